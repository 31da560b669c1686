"""Headers that say again what the body says, so that a proxy need not read it.

The stateless revision has them; whoever reads both must refuse what disagrees, or a proxy could be told
one thing and the server another."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mcp_memory.wire.jsonrpc import Fault, value_of

if TYPE_CHECKING:
    from mcp_memory.wire.http import Request
    from mcp_memory.wire.jsonrpc import Message

HEADER_MISMATCH = -32020
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
ARGUMENT = "Mcp-Param-"  # and then the name that the tool's schema gives the argument as x-mcp-header
WRAPPING = (b"=?base64?", b"?=")


def mismatch(request: Request, message: Message) -> str | None:
    """What a header says otherwise than the body; None when they agree."""
    params = message.params
    version = request.header(b"mcp-protocol-version")
    if params is None or params.meta is None or bytes(params.meta.version) != b'"' + version + b'"':
        return f"Header mismatch: MCP-Protocol-Version is {_shown(version)}, the body says otherwise"
    method = request.header(b"mcp-method")
    if method != message.method.encode():
        return f"Header mismatch: Mcp-Method is {_shown(method)}, the body says {message.method!r}"
    field = NAMED_BY.get(message.method)
    name = getattr(params, field) if field else None
    if isinstance(name, str) and unwrapped(request.header(b"mcp-name")) != name:
        return f"Header mismatch: Mcp-Name is {_shown(request.header(b'mcp-name'))}, the body says {name!r}"
    return None


def argument_mismatch(request: Request, message: Message, mirrored: Mapping[str, str]) -> str | None:
    """What the headers of a call say otherwise than its arguments; `mirrored`: the header of each that has one.

    Both are there and agree, or neither is: a proxy must not go by a value that the call does not have."""
    params = message.params
    given = value_of(bytes(params.arguments)) if params is not None and bytes(params.arguments) else {}
    for argument, header in mirrored.items():
        key = f"{ARGUMENT}{header}".lower().encode()
        said = request.headers.get(key)
        value = given.get(argument) if isinstance(given, dict) else None
        if said is None and (value is None or isinstance(value, list | dict)):
            continue
        if said is None or not _agrees(said, value):
            name, what = f"{ARGUMENT}{header}", "missing" if said is None else _shown(said)
            return f"Header mismatch: {name} is {what}, the argument {argument!r} says otherwise"
    return None


def _agrees(said: bytes, value: Any) -> bool:
    text = unwrapped(said) if said else ""
    if text is None or value is None or isinstance(value, list | dict):
        return False
    if isinstance(value, str):
        return text == value
    try:
        return bool(value_of(text.encode()) == value) and isinstance(value, bool) == (text in ("true", "false"))
    except Fault:
        return False


def unwrapped(value: bytes) -> str | None:
    """The text of a header value that may be wrapped in base64; None when it is none."""
    start, end = WRAPPING
    if value.startswith(start) and value.endswith(end) and len(value) >= len(start) + len(end):
        inside = value[len(start) : -len(end)]
        try:
            value = base64.b64decode(inside, validate=True)
            # One text, one wrapping: what a proxy compares must not have a second form.
            return value.decode() if base64.b64encode(value) == inside else None
        except (binascii.Error, UnicodeDecodeError):
            return None
    return value.decode() if value and value.isascii() else None


def _shown(value: bytes) -> str:
    return repr(value.decode("latin-1")) if value else "missing"
