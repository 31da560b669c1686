"""Access tokens of an authorization server: which count, what they allow, and what clients are told."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import jwt
import pytest

from mcp_memory.settings import BadSetting, read
from mcp_memory.wire import oauth
from mcp_memory.wire.access import Access
from mcp_memory.wire.callers import Denied
from tests.conftest import person
from tests.wire.keys import AUDIENCE, ISSUER, Signer, jwks, published
from tests.wire.network import HELLO, SETTINGS, Answer, Server, Web, real, request, running

SIGNER, STRANGER = Signer(), Signer()
PLAIN = "a-token-of-our-own-too"


def issuer(*signers: Signer, **options: Any) -> oauth.Issuer:
    """An issuer whose keys are at hand."""
    made = oauth.Issuer(ISSUER, AUDIENCE, "keys", fetch=lambda _: jwks(*(signers or (SIGNER,))), **options)
    made.refresh(time.time())
    return made


def unsigned() -> str:
    claims = {"iss": ISSUER, "aud": AUDIENCE, "exp": time.time() + 60, "scope": "admin"}
    return jwt.encode(claims, "", "none")


def signed_with_the_public_key() -> str:
    """The oldest trick: the public key, taken for a shared secret."""

    def part(said: dict[str, Any]) -> bytes:
        return base64.urlsafe_b64encode(json.dumps(said).encode()).rstrip(b"=")

    head = part({"alg": "HS256", "kid": "one"})
    body = part({"iss": ISSUER, "aud": AUDIENCE, "exp": time.time() + 60, "scope": "admin"})
    sign = hmac.digest(json.dumps(SIGNER.public).encode(), head + b"." + body, "sha256")
    return b".".join((head, body, base64.urlsafe_b64encode(sign).rstrip(b"="))).decode()


def endless(opening: bytes) -> str:
    return base64.urlsafe_b64encode(opening * 10_000).rstrip(b"=").decode()


FORGED: dict[str, tuple[Callable[[], str], str]] = {
    "expired": (lambda: SIGNER.token(exp=int(time.time()) - 60), "expired_token"),
    "without an end": (lambda: SIGNER.token(exp=None), "missing_claim"),
    "not yet valid": (lambda: SIGNER.token(nbf=int(time.time()) + 600), "early_token"),
    "for another server": (lambda: SIGNER.token(aud="https://other.example/mcp"), "wrong_audience"),
    "for a longer address": (lambda: SIGNER.token(aud=AUDIENCE + "/x"), "wrong_audience"),
    "for nobody": (lambda: SIGNER.token(aud=None), "missing_claim"),
    "by another issuer": (lambda: SIGNER.token(iss="https://id.example.evil.example"), "wrong_issuer"),
    "by nobody": (lambda: SIGNER.token(iss=None), "missing_claim"),
    "signed by a stranger": (STRANGER.token, "wrong_signature"),
    "with a key of its own": (lambda: STRANGER.token(head={"jwk": STRANGER.public}), "wrong_signature"),
    "with an unknown key": (lambda: SIGNER.token(head={"kid": "two"}), "unknown_key"),
    "not signed": (unsigned, "unknown_key"),
    "signed with the public key": (signed_with_the_public_key, "wrong_algorithm"),
    "altered": (lambda: SIGNER.token()[:-6] + "AAAAAA", "wrong_signature"),
    "no token": (lambda: "a.b.c", "malformed_token"),
    "nested without end": (lambda: f"{endless(b'[')}.e30.AAAA", "malformed_token"),
    "no text": (lambda: "é.é.é", "malformed_token"),
}


@pytest.mark.parametrize("which", FORGED)
def test_a_token_that_is_not_right_in_every_way_does_not_count(which: str) -> None:
    make, reason = FORGED[which]

    with pytest.raises(Denied) as denied:
        issuer(SIGNER, Signer("other")).verify(make().encode(), time.time())

    assert denied.value.reason == reason
    assert not denied.value.is_passing


@pytest.mark.parametrize(
    ("claims", "level"),
    [
        ({"scope": "read"}, 1),
        ({"scope": "openid write"}, 2),
        ({"scope": "admin"}, 3),
        ({"scope": None, "scp": ["read", "write"]}, 2),
        ({"scope": "email"}, 0),
        ({"scope": None}, 0),
        ({"aud": ["https://x.example", AUDIENCE]}, 2),
    ],
)
def test_scopes_are_read_as_issuers_write_them(claims: dict[str, Any], level: int) -> None:
    claimed = issuer().verify(SIGNER.token(**claims).encode(), time.time())

    assert (claimed.name, claimed.level) == ("ada", level)


def test_scopes_may_have_a_prefix() -> None:
    prefixed = issuer(prefix="memory:")

    assert prefixed.verify(SIGNER.token(scope="memory:write").encode(), time.time()).level == 2
    assert prefixed.verify(SIGNER.token(scope="write").encode(), time.time()).level == 0
    assert prefixed.scope(2) == "memory:read memory:write"


def test_a_name_that_a_token_chose_cannot_write_into_the_log() -> None:
    claimed = issuer().verify(SIGNER.token(sub='eve"\nmcp-memory audit: forged').encode(), time.time())

    assert claimed.name == "eve__mcp-memory_audit:_forged"


def test_a_verified_token_is_remembered_no_longer_than_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    source = issuer()
    door = Access(oauth=source)
    given = SIGNER.token(exp=int(time.time()) + 60).encode()
    caller = door.recognise(given)
    assert door.recognise(given) is caller

    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 60 + oauth.LEEWAY_SECONDS + 1)
    with pytest.raises(Denied, match="expired"):
        door.recognise(given)


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────


def test_keys_are_found_by_the_issuers_metadata_and_fetched_anew_when_one_is_unknown() -> None:
    answers: dict[str, bytes] = {}
    with published(answers) as place:
        answers["/.well-known/openid-configuration"] = json.dumps(
            {"issuer": place, "jwks_uri": f"{place}/keys"}
        ).encode()
        source = oauth.Issuer(place, AUDIENCE)
        now = time.time()
        with pytest.raises(Denied) as denied:
            source.verify(SIGNER.token(iss=place).encode(), now)
        assert denied.value.is_passing
        source.refresh(now)
        assert not source.is_ready and "cannot be fetched" in source.trouble

        answers["/keys"] = jwks(SIGNER)
        source.refresh(now + oauth.RETRY_SECONDS)
        assert source.verify(SIGNER.token(iss=place).encode(), now).level == 2

        renewed = Signer("two")
        answers["/keys"] = jwks(SIGNER, renewed)
        later = now + oauth.RETRY_SECONDS + oauth.UNKNOWN_KEY_SECONDS
        with pytest.raises(Denied) as denied:
            source.verify(renewed.token(iss=place).encode(), later)
        assert not denied.value.is_passing and "try again" in denied.value.text  # it is looked up now
        source.refresh(later)
        assert source.verify(renewed.token(iss=place).encode(), later).level == 2


def test_metadata_that_names_another_issuer_is_not_believed() -> None:
    answers: dict[str, bytes] = {"/keys": jwks(SIGNER)}
    with published(answers) as place:
        said = {"issuer": "https://other.example", "jwks_uri": f"{place}/keys"}
        answers["/.well-known/oauth-authorization-server"] = json.dumps(said).encode()
        source = oauth.Issuer(place, AUDIENCE)
        source.refresh(time.time())

        assert not source.is_ready


def test_forged_key_names_do_not_make_us_fetch_keys_again_and_again() -> None:
    asked = []

    def fetch(place: str) -> bytes:
        asked.append(place)
        return jwks(SIGNER)

    source = oauth.Issuer(ISSUER, AUDIENCE, "keys", fetch=fetch)
    now = time.time()
    source.refresh(now)
    for second in range(60):
        for _ in range(10):
            with pytest.raises(Denied):
                source.verify(SIGNER.token(head={"kid": "forged"}).encode(), now + second)
        source.refresh(now + second)

    assert len(asked) <= 3


@pytest.mark.parametrize("issuer", ["http://id.example", "id.example", "ftp://id.example"])
def test_an_issuer_without_https_is_refused(issuer: str) -> None:
    with pytest.raises(BadSetting, match="https://"):
        oauth.issuer_for(read(["--settings", str(SETTINGS), "--oauth-issuer", issuer], {}).settings)


# ── over HTTP ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("oauth")
    keys = folder / "keys.json"
    keys.write_bytes(jwks(SIGNER))
    settings = ("--oauth-issuer", ISSUER, "--oauth-jwks", str(keys), "--public-url", AUDIENCE, "--auth-token", PLAIN)
    with running(real(folder / "memory.db", "http", *settings)) as server:
        with Web(server) as web:
            until = time.monotonic() + 30
            while web.ask("GET", None, "/readyz").status != 200:
                assert time.monotonic() < until
                time.sleep(0.02)
        yield server


def ask(server: Server, token: str, tool: str = "graph_stats", **arguments: Any) -> Answer:
    with Web(server, Authorization=f"Bearer {token}") as web:
        return web.modern("tools/call", name=tool, arguments=arguments)


def test_a_stranger_is_told_where_tokens_come_from(server: Server) -> None:
    where = "https://memory.example/.well-known/oauth-protected-resource/mcp"
    with Web(server) as web:
        refused = web.post(request("initialize", **HELLO))
        said = web.ask("GET", None, "/.well-known/oauth-protected-resource/mcp")
        same = web.ask("GET", None, "/.well-known/oauth-protected-resource", Host="memory.example")

    assert refused.status == 401
    assert refused.headers["www-authenticate"] == (
        f'Bearer realm="mcp-memory", resource_metadata="{where}", scope="read write"'
    )
    assert (
        said.message
        == same.message
        == {
            "resource": AUDIENCE,
            "resource_name": "mcp-memory",
            "authorization_servers": [ISSUER],
            "scopes_supported": ["read", "write", "admin"],
            "bearer_methods_supported": ["header"],
        }
    )


def test_a_token_of_the_issuer_is_let_in_and_so_is_one_of_ours(server: Server) -> None:
    assert ask(server, SIGNER.token()).status == 200
    assert ask(server, PLAIN).status == 200


@pytest.mark.parametrize("which", [which for which in FORGED if which not in ("no text", "not signed")])
def test_a_forged_token_is_unauthorized_and_learns_only_why(server: Server, which: str) -> None:
    refused = ask(server, FORGED[which][0]())

    assert refused.status == 401
    assert 'error="invalid_token", error_description="' in refused.headers["www-authenticate"]


def test_a_scope_cannot_be_stretched(server: Server) -> None:
    reader = SIGNER.token(scope="read")
    ada = {"entities": [person("Ada")]}

    assert ask(server, reader).status == 200
    refused = ask(server, reader, "create_entities", **ada)
    assert refused.status == 403
    assert 'error="insufficient_scope", scope="read write", resource_metadata="' in refused.headers["www-authenticate"]
    assert ask(server, SIGNER.token(scope="read write"), "compact").status == 403
    # But it may grow: the client is shown what it could ask its user for.
    with Web(server, Authorization=f"Bearer {reader}") as web:
        listed = web.modern("tools/list").message["result"]["tools"]
    assert {"create_entities", "compact"} <= {tool["name"] for tool in listed}
    nothing = ask(server, SIGNER.token(scope="email"))
    assert nothing.status == 403 and 'scope="read"' in nothing.headers["www-authenticate"]
