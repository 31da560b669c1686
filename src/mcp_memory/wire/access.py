"""Who may come in: the address that is listened on, the tokens, and the names a request may call us by.

The law: beyond this computer nobody listens without a token, unless that was asked for by name. A browser
that was led astray calls us by a name that is not ours, or comes from a page that is not ours; both are
refused before anything is read."""

from __future__ import annotations

import ipaddress
import os
import socket
import time
from hashlib import sha256
from hmac import compare_digest
from typing import TYPE_CHECKING

from mcp_memory.settings import BadSetting, full_path
from mcp_memory.wire.callers import ALL, ANYBODY, Allowance, Caller, Denied, level_of
from mcp_memory.wire.tokens import LEAST_CHARACTERS, Token, plain_token, read_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_memory.settings import Settings
    from mcp_memory.wire.oauth import Issuer

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
BEARER = b"bearer "
MOST_OF_A_TOKEN = 8192
# Names that proved right are remembered, up to so many: a request is looked at in a microsecond.
MOST_REMEMBERED = 256
# OAuth tokens that proved right are remembered so long: who withdraws a key waits no longer for it.
REMEMBERED_SECONDS = 300.0
MOST_CALLERS = 1024

MISSING = ("no_token", "send Authorization: Bearer and a token")
UNKNOWN = ("unknown_token", "this token is not known here, or was revoked")
EXPIRED = ("expired_token", "this token has expired")


class Access:
    """The tokens and the names of one server."""

    def __init__(
        self,
        tokens: Iterable[Token] = (),
        hosts: tuple[str, ...] = (),
        origins: tuple[str, ...] = (),
        *,
        token_file: str = "",
        oauth: Issuer | None = None,
        rate: float = float("inf"),
        most_at_work: int = 1 << 62,
        least_characters: int = 0,
    ) -> None:
        """`least_characters`: of a token that is given as it is."""
        self.oauth = oauth
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)
        self._known: set[tuple[bytes, bytes, str]] = set()
        self._rate, self._most_at_work = rate, most_at_work
        self._least = least_characters
        self._fixed = tuple(tokens)
        self._file, self._stamp = token_file, _stamp(token_file)
        self._listed: dict[Token, Caller] = {}
        self._digests: list[tuple[bytes, Caller]] = []
        self._verified: dict[bytes, tuple[float, Caller]] = {}
        self._allowances: dict[str, Allowance] = {}
        self.is_open = not (self._fixed or token_file or oauth)
        self._list(self._fixed + (read_tokens(token_file, self._least) if token_file else ()))

    # ── tokens ───────────────────────────────────────────────────────────────────────────────────

    def recognise(self, given: bytes) -> Caller:
        """Whose token this is, alone or after the word Bearer. Denied says why it is nobody's."""
        if self.is_open:
            return ANYBODY
        if given[: len(BEARER)].lower() == BEARER:
            given = given[len(BEARER) :].strip()
        if not given:
            raise Denied(*MISSING)
        digest = sha256(given).digest()
        found = None
        # Each is compared, whichever it is, and only hashes are: how long it takes tells nothing.
        for known, caller in self._digests:
            if compare_digest(digest, known):
                found = caller
        now = time.time()
        if found is None and self.oauth is not None and given.count(b".") == 2:
            found = self._verify(self.oauth, given, digest, now)
        if found is None:
            raise Denied(*UNKNOWN)
        if found.until <= now:
            raise Denied(*EXPIRED)
        return found

    def _verify(self, issuer: Issuer, given: bytes, digest: bytes, now: float) -> Caller:
        known = self._verified.get(digest)
        if known is not None and known[0] > now:
            return known[1]
        claimed = issuer.verify(given, now)
        # What is refused names the scope that it takes, and a client may ask its user for that: so it sees everything.
        caller = Caller(claimed.name, claimed.level, self._allowance(f"oauth {claimed.name}"), claimed.until, ALL)
        if len(self._verified) >= MOST_CALLERS:
            del self._verified[next(iter(self._verified))]
        self._verified[digest] = (now + REMEMBERED_SECONDS, caller)
        return caller

    def _allowance(self, name: str) -> Allowance:
        if name not in self._allowances:
            if len(self._allowances) >= MOST_CALLERS:
                for idle in [name for name, its in self._allowances.items() if its.is_idle]:
                    del self._allowances[idle]
            self._allowances[name] = Allowance(self._rate, self._most_at_work)
        return self._allowances[name]

    def _list(self, tokens: tuple[Token, ...]) -> None:
        before = self._listed
        now_listed: dict[Token, Caller] = {}
        for token in tokens:
            caller = before.get(token)
            if caller is None:
                caller = Caller(token.name, level_of(token.scopes), self._allowance(token.name), token.until)
            now_listed[token] = caller
        self._listed = now_listed
        self._digests = [(token.digest, caller) for token, caller in now_listed.items()]
        for token, caller in before.items():
            caller.is_revoked = token not in now_listed

    def refresh(self) -> str:
        """Take in what was changed outside: for a worker, about once a second. What went wrong, if anything."""
        if self.oauth is not None:
            self.oauth.refresh(time.time())
        stamp = _stamp(self._file)
        if stamp == self._stamp:
            return ""
        self._stamp = stamp
        try:
            self._list(self._fixed + read_tokens(self._file, self._least))
        except BadSetting as fault:
            return f"{fault} The tokens read before still hold."
        return ""

    # ── names ────────────────────────────────────────────────────────────────────────────────────

    def is_called_rightly(self, host: bytes, origin: bytes, local: str) -> bool:
        """May a request with this Host and this Origin (empty: none) arrive at the local address?"""
        names = (host, origin, local)
        if names in self._known:
            return True
        if not self._is_our_host(host, local) or not (not origin or self._is_our_origin(origin)):
            return False
        if len(self._known) < MOST_REMEMBERED:
            self._known.add(names)
        return True

    def _is_our_host(self, host: bytes, local: str) -> bool:
        # A name can be made to lead here by whoever owns it; the address itself cannot.
        text = host.decode("latin-1").lower()
        name = without_port(text)
        return name in LOOPBACK_NAMES or name == local or name in self._hosts or text in self._hosts

    def _is_our_origin(self, origin: bytes) -> bool:
        text = origin.decode("latin-1").lower()
        scheme, separator, place = text.partition("://")
        is_of_this_computer = bool(separator) and scheme in ("http", "https") and without_port(place) in LOOPBACK_NAMES
        return is_of_this_computer or text in self._origins


def without_port(host: str) -> str:
    """`example.org` for `example.org:8080`, `::1` for `[::1]:8080`; other things as they are."""
    name, colon, port = host.rpartition(":")
    if colon and (port.isdigit() or not port) and (":" not in name or name.endswith("]")):
        host = name
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def _stamp(path: str) -> tuple[int, int, int]:
    """What changes when a file does."""
    if not path:
        return (0, 0, 0)
    try:
        found = os.stat(path)
    except OSError:
        return (-1, 0, 0)
    return found.st_mtime_ns, found.st_size, found.st_ino


# ── from the settings ────────────────────────────────────────────────────────────────────────────


def access_for(settings: Settings) -> Access:
    """The access these settings give. BadSetting when they would let anybody in from anywhere."""
    from mcp_memory.wire.oauth import issuer_for

    host, _ = address_of(settings.bind)
    is_near = is_loopback(host) and not (settings.public_url or settings.allowed_hosts)
    least = 0 if is_near else LEAST_CHARACTERS
    fixed = (plain_token("default", settings.auth_token, least),) if settings.auth_token else ()
    path = full_path(settings.auth_token_file) if settings.auth_token_file else ""
    hosts = settings.allowed_hosts
    if settings.public_url:
        hosts = (*hosts, settings.public_url.partition("://")[2].partition("/")[0])
    access = Access(
        fixed,
        hosts,
        settings.allowed_origins,
        token_file=path,
        oauth=issuer_for(settings),
        rate=settings.rate_limit,
        most_at_work=settings.max_parallel,
        least_characters=least,
    )
    if access.is_open and not settings.allow_unauthenticated and not is_loopback(host):
        raise BadSetting(
            f"--bind {settings.bind} can be reached from other computers, and nobody would have to show a token. "
            "Make one with mcp-memory token create and give --auth-token-file FILE, or bind to 127.0.0.1. If everyone "
            "who reaches the port may read and change everything, say so with --allow-unauthenticated."
        )
    return access


def address_of(bind: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`; an IPv6 address stands in brackets."""
    host, _, port = bind.rpartition(":")
    in_brackets = host.startswith("[") and host.endswith("]")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535 or (":" in host and not in_brackets):
        raise BadSetting(f"--bind cannot be {bind!r}: it must be HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080.")
    return host[1:-1] if in_brackets else host, int(port)


def is_loopback(host: str) -> bool:
    """Does every address of this name lead to this computer alone?"""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise BadSetting(f"--bind: there is no address for {host!r} ({error}).") from error
    return all(ipaddress.ip_address(str(place[4][0]).partition("%")[0]).is_loopback for place in found)
