"""Who may come in: the address that is listened on, the token, and the names a request may call us by.

The law: beyond this computer nobody listens without a token. A browser that was led astray calls us by
a name that is not ours, or comes from a page that is not ours; both are refused before anything is read."""

from __future__ import annotations

import ipaddress
import socket
from hmac import compare_digest
from typing import TYPE_CHECKING

from mcp_memory.settings import BadSetting, full_path

if TYPE_CHECKING:
    from mcp_memory.settings import Settings

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
BEARER = b"bearer "
# Names that proved right are remembered, up to so many: a request is looked at in a microsecond.
MOST_REMEMBERED = 256


class Access:
    """The token and the names of one server."""

    def __init__(self, token: str | None = None, hosts: tuple[str, ...] = (), origins: tuple[str, ...] = ()) -> None:
        self._token = None if token is None else token.encode()
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)
        self._known: set[tuple[bytes, bytes, str]] = set()

    @property
    def is_open(self) -> bool:
        return self._token is None

    def admits(self, given: bytes) -> bool:
        """Is this the token, alone or after the word Bearer? Wrong ones all take the same time."""
        if self._token is None:
            return True
        if given[: len(BEARER)].lower() == BEARER:
            given = given[len(BEARER) :].strip()
        return compare_digest(given, self._token)

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


# ── from the settings ────────────────────────────────────────────────────────────────────────────


def access_for(settings: Settings) -> Access:
    """The access these settings give. BadSetting when they would let anybody in from anywhere."""
    token = token_of(settings)
    host, _ = address_of(settings.bind)
    if token is None and not is_loopback(host):
        raise BadSetting(
            f"--bind {settings.bind} can be reached from other computers, and nobody would have to show a token. "
            "Give one with --auth-token-file FILE or MCP_MEMORY_AUTH_TOKEN, or bind to 127.0.0.1."
        )
    return Access(token, settings.allowed_hosts, settings.allowed_origins)


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


def token_of(settings: Settings) -> str | None:
    """The token that clients must show, if any."""
    token = settings.auth_token
    if not token and settings.auth_token_file:
        path = full_path(settings.auth_token_file)
        try:
            with open(path, encoding="utf-8") as file:
                token = file.read(4096).strip()
        except (OSError, ValueError) as error:
            raise BadSetting(f"--auth-token-file: {path} cannot be read: {error}") from error
        if not token:
            raise BadSetting(f"--auth-token-file: {path} is empty. Put the token into it, alone.")
    if token and not (token.isascii() and token.isprintable() and " " not in token):
        raise BadSetting("The token may hold letters, digits and signs of ASCII, and no spaces.")
    return token or None
