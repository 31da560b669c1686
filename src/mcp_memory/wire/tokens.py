"""Bearer tokens: made here, shown once, and kept as hashes.

A file holds either one token and nothing else, or a list as `mcp-memory token` writes it: name, scopes,
end and hash of each. A token is 256 random bits, so its SHA-256 needs neither salt nor slowness."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import tempfile
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from hashlib import sha256

import msgspec

from mcp_memory.facts import SCOPES
from mcp_memory.settings import BadSetting

DEFAULT_FILE = "~/.config/mcp-memory/tokens.json"
PREFIX = "mcpmem_"  # so that those who search for leaked secrets recognise one
MOST_BYTES = 1 << 20
# Of a token that somebody thought out and strangers can try: 20 random letters are 100 bits, and no rate of trying is
# enough for those. What tries by address would be slowed, but behind a proxy everybody has one address.
LEAST_CHARACTERS = 20
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
TIME = "%Y-%m-%dT%H:%M:%SZ"


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One token, without the token."""

    name: str
    scopes: tuple[str, ...]
    sha256: str
    created: str = ""
    expires: str | None = None

    @property
    def digest(self) -> bytes:
        return bytes.fromhex(self.sha256)

    @property
    def until(self) -> float:
        """The moment of its end, in seconds since 1970."""
        return float("inf") if self.expires is None else _moment(self.expires).timestamp()


class TokenList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    tokens: tuple[Token, ...] = ()


def hashed(token: str) -> str:
    return sha256(token.encode()).hexdigest()


def plain_token(name: str, token: str, least: int = 0) -> Token:
    """A token that was given as it is: it may do everything, for ever. `least`: so many characters it must have."""
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise BadSetting("The token may hold letters, digits and signs of ASCII, and no spaces.")
    if len(token) < least:
        raise BadSetting(
            f"The token has {len(token)} characters, and whoever reaches this address may try: it needs {least}, by "
            "chance. mcp-memory token create NAME makes a good one for --auth-token-file."
        )
    return Token(name, SCOPES, hashed(token))


# ── the file ─────────────────────────────────────────────────────────────────────────────────────


def read_tokens(path: str, least: int = 0) -> tuple[Token, ...]:
    """The tokens of a file of either kind; BadSetting says what is wrong with it. `least`: see `plain_token`."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(MOST_BYTES).strip()
    except (OSError, ValueError) as error:
        raise BadSetting(f"--auth-token-file: {path} cannot be read: {error}") from error
    if not text:
        raise BadSetting(f"--auth-token-file: {path} is empty. mcp-memory token create NAME writes a token into it.")
    if not text.startswith("{"):
        return (plain_token("default", text, least),)
    try:
        tokens = msgspec.json.decode(text, type=TokenList).tokens
        for token in tokens:
            _check(token)
    except (ValueError, RecursionError) as fault:
        raise BadSetting(f"--auth-token-file: {path} is no list of tokens: {fault}") from fault
    return tokens


def _check(token: Token) -> None:
    if not NAME.fullmatch(token.name):
        raise ValueError(f"{token.name!r} is no name")
    if not token.scopes or not set(token.scopes) <= set(SCOPES):
        raise ValueError(f"the scopes of {token.name} must be some of {', '.join(SCOPES)}")
    if len(token.digest) != 32:
        raise ValueError(f"the hash of {token.name} must have 64 hexadecimal digits")
    _ = token.until


def write_tokens(path: str, tokens: Iterable[Token]) -> None:
    """The whole file anew, at once, for its owner only."""
    text = msgspec.json.format(msgspec.json.encode(TokenList(tuple(tokens))), indent=2) + b"\n"
    folder = os.path.dirname(path)
    handle, draft = -1, ""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=folder, prefix=".tokens-")  # 0600 from its first moment
        with os.fdopen(handle, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError as error:
        if draft:
            with contextlib.suppress(OSError):
                os.unlink(draft)
        raise BadSetting(f"{path} cannot be written: {error}") from error


# ── changes ──────────────────────────────────────────────────────────────────────────────────────


def create(path: str, name: str, scopes: tuple[str, ...], expires: str, now: datetime) -> tuple[Token, str]:
    """Add a token of this name to the file: what is kept, and the token itself, which nobody can tell again."""
    if not NAME.fullmatch(name):
        raise BadSetting(f"A token cannot be named {name!r}: letters, digits and . _ - are allowed, up to 64 of them.")
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes:
        raise BadSetting(f"--scopes takes some of {', '.join(SCOPES)}, separated by commas.")
    kept = _listed(path)
    if any(token.name == name for token in kept):
        raise BadSetting(f"There is a token named {name} already. mcp-memory token revoke {name} ends it.")
    secret = PREFIX + secrets.token_urlsafe(32)
    end = _end(expires, now)
    made = Token(name, scopes, hashed(secret), now.strftime(TIME), None if end is None else end.strftime(TIME))
    write_tokens(path, [*kept, made])
    return made, secret


def revoke(path: str, name: str) -> None:
    kept = _listed(path)
    left = [token for token in kept if token.name != name]
    if len(left) == len(kept):
        names = ", ".join(token.name for token in kept) or "none"
        raise BadSetting(f"There is no token named {name} in {path}. There are: {names}.")
    write_tokens(path, left)


def _listed(path: str) -> tuple[Token, ...]:
    """The tokens of a file that may not be there yet."""
    if not os.path.exists(path):
        return ()
    tokens = read_tokens(path)
    if tokens and not tokens[0].created:
        raise BadSetting(
            f"{path} holds one plain token. Name another file with --auth-token-file to keep several, with names and "
            "scopes; only their hashes are kept there."
        )
    return tokens


def _end(expires: str, now: datetime) -> datetime | None:
    """`30d`, `12h`, `2026-12-31`, or nothing for a token without an end."""
    if not expires:
        return None
    length = re.fullmatch(r"(\d{1,5})([mhdw])", expires)
    try:
        end = now + timedelta(**{UNITS[length[2]]: int(length[1])}) if length else _moment(expires)
    except ValueError:
        raise BadSetting(
            f"--expires cannot be {expires!r}: it must be a length such as 30d, 12h or 8w, or a date such as "
            "2026-12-31."
        ) from None
    if end <= now:
        raise BadSetting(f"--expires {expires} is over already.")
    return end


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)


def said_about(token: Token, now: datetime) -> str:
    """What it allows, and for how long."""
    over = " (over)" if token.until <= now.timestamp() else ""
    return f"{', '.join(token.scopes)}, {'until ' + token.expires if token.expires else 'without an end'}{over}"
