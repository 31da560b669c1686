"""What each method of the protocol answers. One function per method, and the table that names them.

A method gets its session, the revision the request is written in, the id, the message and its line;
it returns the lines to send, its reply last, or raises a Fault."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from mcp_memory.facts import MemoryFault
from mcp_memory.wire.asking import LEVELS, Dialogue
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
from mcp_memory.wire.news import LISTS, MOST_WATCHED, SUBSCRIPTION, Interest
from mcp_memory.wire.offer import CHANGES_MS, KEEP_MS

if TYPE_CHECKING:
    from mcp_memory.desk import Answer
    from mcp_memory.wire.session import Session

MOST_STREAMS = 1000
JSON_TYPES = {str: "string", int: "number", float: "number", bool: "boolean", list: "array", dict: "object"}


def initialize(session: Session, era: Era, ident: bytes, message: Message, line: bytes) -> list[bytes]:
    """Shake hands on the revision asked for, or on the newest that has a handshake."""
    params = params_of(line)
    asked = params.get("protocolVersion")
    eras = session.offer.eras
    agreed = eras.get(asked, eras[NEWEST_HANDSHAKE]) if isinstance(asked, str) else eras[NEWEST_HANDSHAKE]
    session.shake_hands(agreed, params.get("clientInfo"), params.get("capabilities"))
    return [reply(ident, session.offer.standing("initialize", agreed, session.shown))]


def standing(session: Session, era: Era, ident: bytes, message: Message, line: bytes) -> list[bytes]:
    """What is always answered the same."""
    return [reply(ident, session.offer.standing(message.method, era, session.shown))]


def listing(session: Session, era: Era, ident: bytes, message: Message, line: bytes) -> list[bytes]:
    """A list, or the page of it that a cursor asks for."""
    if session.offer.official:
        return standing(session, era, ident, message, line)
    cursor = params_of(line).get("cursor") if b'"cursor"' in line else None
    return [reply(ident, session.offer.page(message.method, era, cursor, session.shown))]


def set_level(session: Session, era: Era, ident: bytes, message: Message, line: bytes) -> list[bytes]:
    """From here on the client is told what is at least so important."""
    level = params_of(line).get("level")
    if level not in LEVELS:
        raise Fault(INVALID_PARAMS, f'Invalid params: "level" must be one of {", ".join(LEVELS)}')
    session.peer.log_level = level
    return [reply(ident, b"{}")]


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
    is_plain = not (tool.is_errand or tool.is_lengthy or tool.is_search or tool.destructive)
    has_key = params.meta is not None and bool(bytes(params.meta.request_key))
    if session.offer.official or (is_plain and not has_key):
        return told(session, era, ident, desk.call(tool, arguments, origin, at_once=session.is_hurried))
    from mcp_memory.wire.calls import Call

    dialogue = Dialogue(session, era, message, line)
    answer = Call(dialogue, tool, arguments, origin).make()
    return [] if answer is None else [*dialogue.said, *told(session, era, ident, answer)]


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
    body = answer.body
    parts = [b'{"jsonrpc":"2.0","id":', ident, b',"result":{"content":', *_content(answer)]
    holds = era.structured
    if body is not None and holds != NOTHING and (holds == ANYTHING or body[0].startswith(b"{")):
        parts.append(b',"structuredContent":')
        parts += body
    if answer.is_error:
        parts.append(b',"isError":true')
    parts.append(session.offer.stateless_end if era.stateless else b"}")
    parts.append(b"}")
    whole = b"".join(parts)
    return [*wrote(session), whole] if answer.changed else [whole]


def _content(answer: Answer) -> Sequence[bytes]:
    """The answer's content blocks."""
    if answer.blocks is not None:
        return (answer.blocks,)
    return (b'[{"type":"text","text":', *_text(answer), b"}]")


def _text(answer: Answer) -> Sequence[bytes]:
    """The answer's text as a JSON string."""
    if answer.escaped is not None:
        return (b'"', *answer.escaped, b'"')
    return (as_text(answer.structured or b"") if answer.text is None else encode(answer.text),)


# ── resources ────────────────────────────────────────────────────────────────────────────────────


def read(session: Session, era: Era, ident: bytes, message: Message, line: bytes) -> list[bytes]:
    uri = uri_in(session, message)
    offer = session.offer
    told = offer.resources.unchanging.get(uri)
    contents = (
        told(offer.seen(session.shown)) if told else offer.resources.read(uri, offer.desk.space, session.is_hurried)
    )
    if contents is None:
        raise no_such_resource(session, era, uri)
    keep_ms = KEEP_MS if told else CHANGES_MS
    return [reply(ident, offer.result(era, {"contents": [contents]}, keep_ms))]


def subscribe(session: Session, era: Era, ident: bytes, message: Message, line: bytes) -> list[bytes]:
    uri = uri_in(session, message)
    interest = session.peer.interest
    if session.offer.resources.can_change(uri):
        if interest.is_full and uri not in interest:
            raise Fault(INVALID_REQUEST, f"Invalid request: {MOST_WATCHED} subscriptions are the most; end one first")
        interest.add(uri)
        session.offer.watch()
    elif not session.offer.official:
        raise no_such_resource(session, era, uri)
    return [reply(ident, b"{}")]


def unsubscribe(session: Session, era: Era, ident: bytes, message: Message, line: bytes) -> list[bytes]:
    session.peer.interest.discard(uri_in(session, message))
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
    wanted = [uri for uri in uris if isinstance(uri, str)] if isinstance(uris, list) else []
    honoured = [uri for uri in dict.fromkeys(wanted) if session.offer.resources.can_change(uri)][:MOST_WATCHED]
    lists = [name for name in LISTS if asked.get(f"{name}ListChanged") is True]
    session.streams[key] = Interest(session.offer, ident, honoured, lists)
    if honoured:
        session.offer.watch()
    carried: dict[str, Any] = {f"{name}ListChanged": True for name in lists}
    if honoured:
        carried["resourceSubscriptions"] = honoured
    params = {"_meta": {SUBSCRIPTION: msgspec.Raw(ident)}, "notifications": carried}
    return [notification("notifications/subscriptions/acknowledged", encode(params))]


def end_of_stream(session: Session, ident: bytes) -> bytes:
    """The reply to a `listen`: the server ended the stream, on purpose."""
    meta = {SUBSCRIPTION: msgspec.Raw(ident), "io.modelcontextprotocol/serverInfo": session.offer.server_info}
    return reply(ident, encode({"resultType": "complete", "_meta": meta}))


def wrote(session: Session) -> list[bytes]:
    """A call of this client has written: the others are told, and these notices are owed to itself."""
    session.offer.wrote(session)
    return updates(session, session.is_hurried)


def updates(session: Session, at_once: bool = True) -> list[bytes]:
    """The notices that are owed to this client."""
    owed = session.peer.interest.owed(at_once)
    for interest in list(session.streams.values()):
        owed += interest.owed(at_once)
    return owed


# ── prompts, completions, skills ─────────────────────────────────────────────────────────────────


def prompt(session: Session, era: Era, ident: bytes, message: Message, line: bytes) -> list[bytes]:
    """A prompt with its arguments put in."""
    params = message.params
    name = None if params is None else params.name
    if params is None or not isinstance(name, str):
        raise bad_param(session, "name", "string", name, name is None)
    chosen = session.offer.offered_prompts(session.shown).get(name)
    if chosen is None:
        raise Fault(INVALID_PARAMS, f"Unknown prompt: {name}. prompts/list names those there are.")
    given = value_of(bytes(params.arguments)) if bytes(params.arguments) else {}
    arguments = chosen.checked(given)
    messages = chosen.render(session.offer.desk, arguments, Dialogue(session, era, message, line))
    fields: dict[str, Any] = {"description": chosen.description, "messages": messages}
    return [reply(ident, session.offer.result(era, fields))]


def complete(session: Session, era: Era, ident: bytes, message: Message, line: bytes) -> list[bytes]:
    from mcp_memory.wire.completions import completed

    values, total = completed(session.offer, params_of(line), session.is_hurried)
    completion = {"values": values, "total": total, "hasMore": total > len(values)}
    return [reply(ident, session.offer.result(era, {"completion": completion}))]


def skill(session: Session, era: Era, ident: bytes, message: Message, line: bytes) -> list[bytes]:
    from mcp_memory.wire.skills import skill_of

    uri = uri_in(session, message)
    found = skill_of(uri, session.offer.seen(session.shown))
    if found is None:
        raise Fault(INVALID_PARAMS, f"Skill not found: {uri}. skills/list names those there are.", data={"uri": uri})
    return [reply(ident, session.offer.result(era, {"skill": found}, KEEP_MS))]


# ── parameters ───────────────────────────────────────────────────────────────────────────────────


def uri_in(session: Session, message: Message) -> str:
    uri = None if message.params is None else message.params.uri
    if not isinstance(uri, str):
        raise bad_param(session, "uri", "string", uri, uri is None)
    return uri


def no_such_resource(session: Session, era: Era, uri: str) -> Fault:
    if session.offer.official:
        return Fault(INVALID_PARAMS, f"MCP error -32602: Resource {uri} not found")
    known = ", ".join(session.offer.resources.names)
    return Fault(era.no_such_resource, f"Resource not found: {uri}. There are {known}.", data={"uri": uri})


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
    "logging/setLevel": set_level,
    "server/discover": standing,
    "tools/list": listing,
    "tools/call": call_tool,
    "resources/list": listing,
    "resources/templates/list": listing,
    "resources/read": read,
    "resources/subscribe": subscribe,
    "resources/unsubscribe": unsubscribe,
    "subscriptions/listen": listen,
    "prompts/list": listing,
    "prompts/get": prompt,
    "completion/complete": complete,
    "skills/list": listing,
    "skills/get": skill,
}
