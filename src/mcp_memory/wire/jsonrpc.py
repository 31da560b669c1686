"""JSON-RPC 2.0 as bytes: chunks into lines, lines into messages, results into lines.

Knows nothing of what a method means. An id is kept as the bytes it came in and goes back as the same
bytes; whatever else is wrong with a line, its id is looked for, so that no client waits for ever."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from mcp_memory.facts import Interruption

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

MOST_BYTES = 16 * 1024 * 1024  # of one line
# How much of a broken line is searched for its id, from the front and at the end.
SEARCHED, ENDING = 65_536, 512

ABSENT = msgspec.Raw(b"")
NULL = b"null"
# What the JSON of a string or a number begins with: the ids that can be answered.
ID_STARTS = b'"-0123456789'

encode = msgspec.json.encode


class Meta(msgspec.Struct, gc=False):
    """What `_meta` may say to a server."""

    progress_token: msgspec.Raw = msgspec.field(default=ABSENT, name="progressToken")
    version: msgspec.Raw = msgspec.field(default=ABSENT, name="io.modelcontextprotocol/protocolVersion")
    capabilities: msgspec.Raw = msgspec.field(default=ABSENT, name="io.modelcontextprotocol/clientCapabilities")
    client: msgspec.Raw = msgspec.field(default=ABSENT, name="io.modelcontextprotocol/clientInfo")
    log_level: msgspec.Raw = msgspec.field(default=ABSENT, name="io.modelcontextprotocol/logLevel")
    request_key: msgspec.Raw = msgspec.field(default=ABSENT, name="mcp-memory/requestKey")


class Params(msgspec.Struct, gc=False):
    """The parameters that calls and reads have; rarer ones are decoded by the method that wants them."""

    name: Any = None
    uri: Any = None
    arguments: msgspec.Raw = ABSENT
    meta: Meta | None = msgspec.field(default=None, name="_meta")


class Message(msgspec.Struct, gc=False):
    """A request, or a notification when it has no id."""

    jsonrpc: Literal["2.0"]
    method: str
    id: msgspec.Raw = ABSENT
    params: Params | None = None


class _Loose(msgspec.Struct, gc=False):
    """Any JSON object, to find out what kept it from being a Message."""

    jsonrpc: msgspec.Raw = ABSENT
    id: msgspec.Raw = ABSENT
    method: msgspec.Raw = ABSENT
    params: msgspec.Raw = ABSENT
    result: msgspec.Raw = ABSENT
    error: msgspec.Raw = ABSENT


_decode = msgspec.json.Decoder(Message).decode
_decode_loose = msgspec.json.Decoder(_Loose).decode
_decode_batch = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Fault(Interruption):
    """Why a line cannot be acted on; `text` tells the client."""

    def __init__(self, code: int, text: str, ident: bytes = NULL, data: Any = None) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.ident = ident
        self.data = data


def decode(line: bytes) -> Message:
    """The message in this line; ValueError or RecursionError when there is none (see `fault_in`)."""
    # Parts that are kept raw are only skipped by the decoder, so nobody else would notice bad UTF-8.
    if not line.isascii():
        line.decode()
    return _decode(line)


def params_of(line: bytes) -> dict[str, Any]:
    """All parameters of a message that decoded."""
    params = value_of(line).get("params")
    return params if isinstance(params, dict) else {}


def value_of(json: bytes) -> Any:
    """What this part of a message means. It was only skipped so far: there are numbers no float can hold."""
    try:
        return msgspec.json.decode(json)
    except (ValueError, RecursionError) as fault:
        raise Fault(INVALID_PARAMS, f"Invalid params: {fault}") from None


def key_of(ident: bytes) -> Any:
    """What two spellings of the same id have in common."""
    try:
        return value_of(ident)
    except Fault:
        return ident


def batch_in(line: bytes) -> list[bytes] | None:
    """The members of a batch; None when the line is not one."""
    if line.lstrip()[:1] != b"[":
        return None
    try:
        return [bytes(member) for member in _decode_batch(line)]
    except (ValueError, RecursionError):
        return None


def fault_in(line: bytes) -> Fault | None:
    """What is wrong with a line that `decode` refused; None when no answer is due."""
    if not line.strip():
        return None
    try:
        if not line.isascii():
            line.decode()
        loose = _decode_loose(line)
    except msgspec.ValidationError:
        # Said of the first character, before the rest was read: is it JSON at all?
        return _syntax_fault(line) or Fault(INVALID_REQUEST, "Invalid request: a message is a JSON object")
    except RecursionError:
        return Fault(PARSE_ERROR, "Parse error: nested too deeply", salvaged_id(line))
    except ValueError as fault:
        # Lone surrogates, bad UTF-8: a request to its sender, who waits for an answer to it.
        return Fault(PARSE_ERROR, f"Parse error: {fault}", salvaged_id(line) if _is_json_to_others(line) else NULL)
    return _fault_of(loose, line)


def _syntax_fault(line: bytes) -> Fault | None:
    try:
        msgspec.json.decode(line)
    except RecursionError:
        return Fault(PARSE_ERROR, "Parse error: nested too deeply")
    except ValueError as fault:
        return Fault(PARSE_ERROR, f"Parse error: {fault}")
    return None


def _is_json_to_others(line: bytes) -> bool:
    import json

    try:
        json.loads(line.decode("utf-8", "replace"))
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def _fault_of(loose: _Loose, line: bytes) -> Fault | None:
    ident, method = bytes(loose.id), bytes(loose.method)
    if not method and (bytes(loose.result) or bytes(loose.error)):
        return None  # an answer; we never asked
    musts = (
        (not ident or ident[0] in ID_STARTS, "the id must be a string or a number"),
        (bytes(loose.jsonrpc) == b'"2.0"', '"jsonrpc" must be "2.0"'),
        (method.startswith(b'"'), '"method" must be a string'),
    )
    broken = [must for is_kept, must in musts if not is_kept]
    if broken:
        return Fault(INVALID_REQUEST, f"Invalid request: {broken[0]}", ident if musts[0][0] and ident else NULL)
    if not ident:
        return None  # a notification is never answered, not even a bad one
    return Fault(INVALID_PARAMS, f"Invalid params: {_wrong_params(line)}", ident)


def _wrong_params(line: bytes) -> str:
    try:
        _decode(line)
    except (ValueError, RecursionError) as fault:
        return str(fault)
    return "they cannot be read"


def salvaged_id(line: bytes, tail: bytes = b"") -> bytes:
    """The id of a request that cannot be decoded, or null.

    Looked for among the keys of the outermost object; of a line too long to be read through, also right
    before its last brace, which is where some clients put it."""
    import re

    number_or_text = rb'("(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?)'
    # Strings and brackets are enough to know the depth. Each match is possessive, so the search is linear.
    token = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[{}\[\]]', re.DOTALL)
    value = re.compile(rb"\s*:\s*" + number_or_text + rb"\s*[,}]", re.DOTALL)
    if len(line) > SEARCHED:
        line, tail = line[:SEARCHED], tail or line[-ENDING:]
    depth = 0
    for found in token.finditer(line):
        mark = found[0]
        if mark in b"{[":
            depth += 1
        elif mark in b"}]":
            depth -= 1
        elif depth == 1 and mark == b'"id"' and (its := value.match(line, found.end())):
            return _as_id(its[1])
    last = re.search(rb'[,{]\s*"id"\s*:\s*' + number_or_text + rb"\s*\}\s*$", tail, re.DOTALL)
    return _as_id(last[1]) if last else NULL


def _as_id(found: bytes) -> bytes:
    try:
        msgspec.json.decode(found)
    except ValueError:
        return NULL
    return found


# ── answers ──────────────────────────────────────────────────────────────────────────────────────


def reply(ident: bytes, result: bytes) -> bytes:
    return b"".join((b'{"jsonrpc":"2.0","id":', ident, b',"result":', result, b"}"))


def refusal(fault: Fault) -> bytes:
    told: dict[str, Any] = {"code": fault.code, "message": fault.text}
    if fault.data is not None:
        told["data"] = fault.data
    return b"".join((b'{"jsonrpc":"2.0","id":', fault.ident, b',"error":', encode(told), b"}"))


def as_text(json: bytes) -> bytes:
    """A compact JSON document as a JSON string."""
    # Of 22 MB: 10 ms where all is ASCII. Else 16 ms this way against 49; control characters are escaped already.
    if json.isascii():
        return encode(json.decode())
    return b'"' + json.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def notification(method: str, params: bytes) -> bytes:
    return b"".join((b'{"jsonrpc":"2.0","method":', encode(method), b',"params":', params, b"}"))


NOTICE = b'{"jsonrpc":"2.0","method":'


def is_notice(line: bytes) -> bool:
    """Is this line of ours a notification, and no reply?"""
    return line.startswith(NOTICE)


def error_code(line: bytes, ident: bytes) -> int:
    """The code of this reply of ours to this id, if it is an error; else 0."""
    beginning = b'{"jsonrpc":"2.0","id":%b,"error":{"code":' % ident
    return int(line[len(beginning) :].partition(b",")[0]) if line.startswith(beginning) else 0
