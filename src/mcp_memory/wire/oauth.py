"""OAuth 2.1, the part of a resource server: access tokens of one authorization server are verified here.

A token counts when its signature is by a key that the issuer publishes, it names that issuer and us as its
audience, it has an end which is not over, and its scopes allow something. Keys are fetched by a worker, never
while a request waits; the network is asked for nothing but the issuer's metadata and keys."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from mcp_memory.facts import SCOPES
from mcp_memory.settings import BadSetting, full_path
from mcp_memory.wire.callers import Denied, level_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_memory.settings import Settings

    Fetch = Callable[[str], bytes]

# Signatures by a key that only the issuer has. Never HS…: its secret would have to be here too. Never none.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
LEEWAY_SECONDS = 30.0  # clocks differ
# Keys are fetched anew so often; sooner when a token names an unknown one, but not for every forged token.
KEYS_SECONDS, UNKNOWN_KEY_SECONDS, RETRY_SECONDS = 600.0, 30.0, 5.0
FETCH_SECONDS = 5.0
MOST_OF_AN_ANSWER = 1 << 20
METADATA = "/.well-known/oauth-protected-resource"
WELL_KNOWN = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")
NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.@:|/-]")
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Claimed(NamedTuple):
    """What a token that proved right says."""

    name: str
    level: int
    until: float


class Issuer:
    """The authorization server that is trusted, and the keys it signs with."""

    def __init__(
        self, issuer: str, audience: str, jwks: str = "", *, prefix: str = "", fetch: Fetch | None = None
    ) -> None:
        self.issuer = issuer
        self.audience = audience
        self.prefix = prefix
        self._place = jwks
        self._fetch = fetch or fetched
        self._keys: dict[str, Any] = {}
        self._next = 0.0  # when keys are fetched again
        self._fetched_at = 0.0
        self.trouble = "the keys of the authorization server have not been fetched yet"

    @property
    def is_ready(self) -> bool:
        return bool(self._keys)

    # ── tokens ───────────────────────────────────────────────────────────────────────────────────

    def verify(self, given: bytes, now: float) -> Claimed:
        """What the token says; Denied when it does not count."""
        import jwt

        if not self._keys:
            raise Denied("no_keys", self.trouble, is_passing=True)
        try:
            token = given.decode("ascii")
            key = self._key_for(jwt.get_unverified_header(token), now)
            claims = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                audience=self.audience,
                issuer=self.issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.PyJWTError as fault:
            raise Denied(*_explained(fault)) from None
        except (ValueError, TypeError, KeyError, RecursionError):
            raise Denied("malformed_token", "this is no access token that can be read") from None
        return self._claimed(claims)

    def _key_for(self, head: dict[str, Any], now: float) -> Any:
        named = head.get("kid")
        if named is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        key = self._keys.get(str(named))
        if key is not None:
            return key
        if now >= self._fetched_at + UNKNOWN_KEY_SECONDS:  # perhaps it is new: the keys are fetched now
            self._next = 0.0
            raise Denied("unknown_key", "this token is signed by a key that is not known yet; try again in a second")
        raise Denied("unknown_key", "this token is signed by a key that its issuer does not publish")

    def _claimed(self, claims: dict[str, Any]) -> Claimed:
        said = claims.get("scope", claims.get("scp", ""))
        scopes = said.split() if isinstance(said, str) else [one for one in said if isinstance(one, str)]
        ours = [scope.removeprefix(self.prefix) for scope in scopes if scope.startswith(self.prefix)]
        who = claims.get("sub") or claims.get("client_id") or claims.get("azp") or "nobody"
        name = NOT_IN_A_NAME.sub("_", str(who))[:64]
        return Claimed(name, level_of(ours), float(claims["exp"]) + LEEWAY_SECONDS)

    # ── keys ─────────────────────────────────────────────────────────────────────────────────────

    def refresh(self, now: float) -> None:
        """Fetch the keys if it is time to. For a worker."""
        if now < self._next:
            return
        self._next = now + RETRY_SECONDS
        try:
            self._keys = _keys_in(self._fetch(self._place or self._discover()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as fault:
            self.trouble = f"the keys of the authorization server cannot be fetched ({type(fault).__name__})"
            return
        self._fetched_at = now
        self._next = now + KEYS_SECONDS
        self.trouble = ""

    def _discover(self) -> str:
        """Where the issuer says its keys are."""
        parts = urlsplit(self.issuer)
        root, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        failed: Exception = ValueError("no metadata")
        for place in (
            root + WELL_KNOWN[0] + path,
            root + WELL_KNOWN[1] + path,
            self.issuer.rstrip("/") + WELL_KNOWN[1],
        ):
            try:
                said = json.loads(self._fetch(place))
                if said["issuer"] != self.issuer:
                    raise ValueError("the metadata names another issuer")
                return str(said["jwks_uri"])
            except (OSError, ValueError, KeyError, TypeError, RecursionError) as fault:
                failed = fault
        raise ValueError("no metadata") from failed

    # ── what clients are told ────────────────────────────────────────────────────────────────────

    def scope(self, level: int) -> str:
        """The scopes to ask for, to be allowed so much."""
        return " ".join(self.prefix + scope for scope in SCOPES[:level])

    def metadata(self, resource: str) -> bytes:
        """RFC 9728: what we are and whom we trust."""
        return json.dumps(
            {
                "resource": resource,
                "resource_name": "mcp-memory",
                "authorization_servers": [self.issuer],
                "scopes_supported": [self.prefix + scope for scope in SCOPES],
                "bearer_methods_supported": ["header"],
            }
        ).encode()


def _keys_in(answer: bytes) -> dict[str, Any]:
    """The keys of a JWKS by their id; those that are not for signatures, or of a kind we do not take, left out."""
    import jwt

    keys: dict[str, Any] = {}
    for number, said in enumerate(json.loads(answer)["keys"]):
        if said.get("kty") not in ("RSA", "EC", "OKP") or said.get("use", "sig") != "sig":
            continue
        try:
            keys[str(said.get("kid", f"key {number}"))] = jwt.PyJWK(said)
        except jwt.PyJWTError:
            continue
    if not keys:
        raise ValueError("no key for signatures")
    return keys


def _explained(fault: Exception) -> tuple[str, str]:
    import jwt

    for kind, reason, text in (
        (jwt.ExpiredSignatureError, "expired_token", "this token has expired"),
        (jwt.ImmatureSignatureError, "early_token", "this token does not hold yet"),
        (jwt.InvalidAudienceError, "wrong_audience", "this token is meant for another server"),
        (jwt.InvalidIssuerError, "wrong_issuer", "this token is by another issuer"),
        (jwt.MissingRequiredClaimError, "missing_claim", "this token lacks one of exp, iss and aud"),
        (jwt.InvalidSignatureError, "wrong_signature", "the signature of this token is not by its issuer"),
        (jwt.InvalidAlgorithmError, "wrong_algorithm", "this token is signed in a way that is not accepted"),
    ):
        if isinstance(fault, kind):
            return reason, text
    return "malformed_token", "this is no access token that can be read"


def fetched(place: str) -> bytes:
    """What is at this address, or in this file. Only https, where it is not this computer's."""
    if "://" not in place:
        with open(full_path(place), "rb") as file:
            return file.read(MOST_OF_AN_ANSWER)
    from urllib.error import HTTPError
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class NoRedirect(HTTPRedirectHandler):
        """Whoever is trusted answers; it does not name somebody else."""

        def redirect_request(self, *_: Any) -> None:
            return None

    _must_be_safe(place, "The address of the keys")
    asked = Request(place, headers={"Accept": "application/json", "User-Agent": "mcp-memory"})
    try:
        with build_opener(NoRedirect).open(asked, timeout=FETCH_SECONDS) as answer:
            data: bytes = answer.read(MOST_OF_AN_ANSWER)
    except HTTPError as error:
        error.close()
        raise
    return data


def _must_be_safe(url: str, what: str) -> None:
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        raise BadSetting(f"{what} must begin with https://, not {url!r}.")


# ── from the settings ────────────────────────────────────────────────────────────────────────────


def issuer_for(settings: Settings) -> Issuer | None:
    """The issuer these settings trust, if any."""
    if not settings.oauth_issuer:
        return None
    try:
        import jwt
    except ImportError as error:
        raise BadSetting(
            "--oauth-issuer needs one package more: install this one with its extra oauth (docs/deployment.md)."
        ) from error
    if not jwt.algorithms.has_crypto:
        raise BadSetting(
            "--oauth-issuer needs the package cryptography: install this one with its extra oauth (docs/deployment.md)."
        )
    _must_be_safe(settings.oauth_issuer, "--oauth-issuer")
    if "://" in settings.oauth_jwks:
        _must_be_safe(settings.oauth_jwks, "--oauth-jwks")
    return Issuer(
        settings.oauth_issuer,
        settings.oauth_audience or resource_of(settings),
        settings.oauth_jwks,
        prefix=settings.oauth_scope_prefix,
    )


def resource_of(settings: Settings) -> str:
    """Our own address, as clients know it."""
    scheme = "https" if settings.tls_cert else "http"
    return settings.public_url or f"{scheme}://{settings.bind}/mcp"


def metadata_url(resource: str) -> str:
    """Where RFC 9728 has a client look for the metadata of this address."""
    parts = urlsplit(resource)
    return f"{parts.scheme}://{parts.netloc}{METADATA}{parts.path.rstrip('/')}"
