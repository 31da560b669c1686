"""What each method of the protocol answers. One function per method, and the table that names them.

A method gets its session, the revision the request is written in, the id, the message and its line;
it returns the lines to send, its reply last, or raises a Fault."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from mcp_memory.facts import MemoryFault
from mcp_memory.wire import resources
from mcp_memory.wire.eras import ANYTHING, NEWEST_HANDSHAKE, NOTHING, Era
from mcp_memory.wire.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    Fault,
    Message,
    as_text,
    encode,
    key_of,
    notification,
    params_of,
    reply,
    value_of,
)
from mcp_memory.wire.offer import CHANGES_MS

if TYPE_CHECKING:
    from mcp_memory.desk import Answer
    from mcp_memory.wire.session import Session

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
UPDATED = "notifications/resources/updated"
UPDATE = notification(UPDATED, encode({"uri": resources.URI}))
MOST_STREAMS = 1000
JSON_TYPES = {str: "string", int: "number", float: "number", bool: "boolean", list: "array", dict: "object"}


def initialize(session: Session, era: Era, ident: bytes, message: Message, line: bytes) -> list[bytes]:
    """Shake hands on the revision asked for, or on the newest that has a handshake."""
    params = params_of(line)
    asked = params.get("protocolVersion")
    eras = session.offer.eras
    agreed = eras.get(asked, eras[NEWEST_HANDSHAKE]) if isinstance(asked, str) else eras[NEWEST_HANDSHAKE]
    session.shake_hands(agreed, params.get("clientInfo"))
    return [reply(ident, session.offer.standing("initialize", agreed))]


def standing(session: Session, era: Era, ident: bytes, message: Message, line: bytes) -> list[bytes]:
    """What is always answered the same."""
    return [reply(ident, session.offer.standing(message.method, era))]


def nothing(session: Session, era: Era, ident: bytes, message: Message, line: bytes) -> list[bytes]:
    """Being answered is all that is asked."""
    return [reply(ident, b"{}")]


# ── tools ────────────────────────────────────────────────────────────────────────────────────────


def call_tool(session: Session, era: Era, ident: bytes, message: Message, line: bytes) -> list[bytes]:
    """Call a tool; a long one only begins here, and is answered when it is done."""
    params = message.params
    name = None if params is None else params.name
    if params is None or name.__class__ is not str:
        raise bad_param(session, "name", "string", name, name is None)
    arguments = bytes(params.arguments) or b"{}"
    if arguments[0] != b"{"[0]:
        arguments = _no_object(session, arguments)
    desk = session.offer.desk
    tool = desk.tools.get(name)
    if tool is None:
        return unknown_tool(session, ident, name)
    if tool.level > session.level:
        allowed = f"{name} needs a token with the scope {tool.scope}, which this one has not. Nothing was changed."
        return told(session, era, ident, desk.refusal(MemoryFault(allowed)))
    origin = session.origin if params.meta is None else session.sender(params.meta)
    if tool.is_errand and not session.in_batch:
        from mcp_memory.wire.errands import LongCall

        session.begin(LongCall(era, ident, tool, arguments, origin, message))
        return []
    return told(session, era, ident, desk.call(tool, arguments, origin, at_once=session.is_hurried))


def _no_object(session: Session, arguments: bytes) -> bytes:
    if session.offer.official:
        value = value_of(arguments)
        raise bad_param(session, "arguments", "record", value, False)
    return b"{}" if arguments == b"null" else arguments  # the tool will say what is wrong with it


def unknown_tool(session: Session, ident: bytes, name: str) -> list[bytes]:
    if not session.offer.official:
        raise Fault(INVALID_PARAMS, f"Unknown tool: {name}. tools/list names those there are.")
    said = {"content": [{"type": "text", "text": f"MCP error -32602: Tool {name} not found"}], "isError": True}
    return [reply(ident, encode(said))]


def told(session: Session, era: Era, ident: bytes, answer: Answer) -> list[bytes]:
    """The reply that carries a tool's answer, after the notices of what the call changed."""
    structured = answer.structured
    parts = [b'{"jsonrpc":"2.0","id":', ident, b',"result":{"content":[{"type":"text","text":', *_text(answer), b"}]"]
    holds = era.structured
    if structured is not None and holds != NOTHING and (holds == ANYTHING or structured.startswith(b"{")):
        parts.append(b',"structuredContent":')
        parts.append(structured)
    if answer.is_error:
        parts.append(b',"isError":true')
    parts.append(session.offer.stateless_end if era.stateless else b"}")
    parts.append(b"}")
    whole = b"".join(parts)
    return [*wrote(session), whole] if answer.changed else [whole]


def _text(answer: Answer) -> Sequence[bytes]:
    """The answer's text as a JSON string."""
    if answer.escaped is not None:
        return (b'"', *answer.escaped, b'"')
    return (as_text(answer.structured or b"") if answer.text is None else encode(answer.text),)


# ── the resource ─────────────────────────────────────────────────────────────────────────────────


def read(session: Session, era: Era, ident: bytes, message: Message, line: bytes) -> list[bytes]:
    uri = uri_in(session, message)
    if uri != resources.URI:
        raise no_such_resource(session, era, uri)
    contents = resources.contents(session.offer.desk.space, session.offer.official, session.is_hurried)
    return [reply(ident, session.offer.result(era, {"contents": [contents]}, CHANGES_MS))]


def subscribe(session: Session, era: Era, ident: bytes, message: Message, line: bytes) -> list[bytes]:
    uri = uri_in(session, message)
    if uri != resources.URI and not session.offer.official:
        raise no_such_resource(session, era, uri)
    session.subscribed = session.subscribed or uri == resources.URI
    return [reply(ident, b"{}")]


def unsubscribe(session: Session, era: Era, ident: bytes, message: Message, line: bytes) -> list[bytes]:
    uri = uri_in(session, message)
    session.subscribed = session.subscribed and uri != resources.URI
    return [reply(ident, b"{}")]


def listen(session: Session, era: Era, ident: bytes, message: Message, line: bytes) -> list[bytes]:
    """Open a stream of notices; its reply comes when it ends. The acknowledgement says what it will carry."""
    key = key_of(ident)
    if key in session.streams or len(session.streams) >= MOST_STREAMS:
        raise Fault(INVALID_REQUEST, "Invalid request: this id listens already, or too many do")
    asked = params_of(line).get("notifications")
    if not isinstance(asked, dict):
        raise Fault(INVALID_PARAMS, 'Invalid params: "notifications" must be an object')
    uris = asked.get("resourceSubscriptions")
    wanted = isinstance(uris, list) and resources.URI in uris
    session.streams[key] = (ident, wanted)
    honoured = {"resourceSubscriptions": [resources.URI]} if wanted else {}
    params = {"_meta": {SUBSCRIPTION: msgspec.Raw(ident)}, "notifications": honoured}
    return [notification("notifications/subscriptions/acknowledged", encode(params))]


def end_of_stream(session: Session, ident: bytes) -> bytes:
    """The reply to a `listen`: the server ended the stream, on purpose."""
    meta = {SUBSCRIPTION: msgspec.Raw(ident), "io.modelcontextprotocol/serverInfo": session.offer.server_info}
    return reply(ident, encode({"resultType": "complete", "_meta": meta}))


def wrote(session: Session) -> list[bytes]:
    """A call of this client has written: the others are told, and these notices are owed to itself."""
    for tell in session.offer.listeners:
        tell(session)
    return updates(session)


def updates(session: Session) -> list[bytes]:
    """The notices that a write owes to this client."""
    owed = [UPDATE] if session.subscribed else []
    for ident, wanted in list(session.streams.values()):
        if wanted:
            owed.append(
                notification(UPDATED, encode({"_meta": {SUBSCRIPTION: msgspec.Raw(ident)}, "uri": resources.URI}))
            )
    return owed


# ── parameters ───────────────────────────────────────────────────────────────────────────────────


def uri_in(session: Session, message: Message) -> str:
    uri = None if message.params is None else message.params.uri
    if not isinstance(uri, str):
        raise bad_param(session, "uri", "string", uri, uri is None)
    return uri


def no_such_resource(session: Session, era: Era, uri: str) -> Fault:
    if session.offer.official:
        return Fault(INVALID_PARAMS, f"MCP error -32602: Resource {uri} not found")
    return Fault(era.no_such_resource, f"Resource not found: {uri}. There is {resources.URI}.", data={"uri": uri})


def bad_param(session: Session, name: str, expected: str, got: Any, missing: bool) -> Fault:
    """A parameter of the wrong type, said as the profile says it."""
    if not session.offer.official:
        return Fault(INVALID_PARAMS, f'Invalid params: "{name}" must be a {expected}')
    # The official server hands its validator's finding through, indented.
    came = "undefined" if missing else JSON_TYPES.get(type(got), "null")
    text = f"Invalid input: expected {expected}, received {came}"
    issue = {"expected": expected, "code": "invalid_type", "path": ["params", name], "message": text}
    return Fault(INTERNAL_ERROR, msgspec.json.format(encode([issue]), indent=2).decode())


HANDLERS: dict[str, Callable[[Session, Era, bytes, Message, bytes], list[bytes]]] = {
    "initialize": initialize,
    "ping": nothing,
    "logging/setLevel": nothing,
    "server/discover": standing,
    "tools/list": standing,
    "tools/call": call_tool,
    "resources/list": standing,
    "resources/templates/list": standing,
    "resources/read": read,
    "resources/subscribe": subscribe,
    "resources/unsubscribe": unsubscribe,
    "subscriptions/listen": listen,
}
