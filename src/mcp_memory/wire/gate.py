"""Who may ask over HTTP, and for what: names, tokens, scopes, and how often.

The law: a stranger learns what is wanted and nothing else, and a refusal costs us less than the asking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_memory.facts import SCOPES
from mcp_memory.wire.callers import ALL, NOBODY, Denied
from mcp_memory.wire.http import Reply, refused
from mcp_memory.wire.jsonrpc import NULL
from mcp_memory.wire.oauth import metadata_url

if TYPE_CHECKING:
    from mcp_memory.wire.http import HttpConnection, Request
    from mcp_memory.wire.jsonrpc import Message
    from mcp_memory.wire.serving import Service

# What a page of an allowed origin may send, and may see of the answer.
CORS_HEADERS = (
    b"access-control-allow-methods: POST, GET, DELETE\r\naccess-control-allow-headers: authorization, content-type, "
    b"accept, last-event-id, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name\r\n"
    b"access-control-max-age: 600\r\n"
)
CORS = (
    b"access-control-allow-origin: %b\r\nvary: origin\r\n"
    b"access-control-expose-headers: mcp-session-id, www-authenticate\r\n"
)
FOREIGN = refused(
    403, "Forbidden: the Host or the Origin of the request is not one of this server's.", reason="foreign_name"
)
TOO_OFTEN = refused(
    429, "Too many requests with this token. Try again in a second.", b"retry-after: 1\r\n", reason="too_often"
)
TOO_MUCH = refused(
    429,
    "Too many long calls or streams with this token. Try again when others have ended.",
    b"retry-after: 5\r\n",
    reason="too_much_at_once",
)


class Gate:
    """What every request of one service passes."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.metadata_url = "" if service.access.oauth is None else metadata_url(service.resource)

    def check_names(self, request: Request, connection: HttpConnection) -> Reply | None:
        """Is it us that is meant, and does a page that may ask us ask? What a browser asks first is answered."""
        origin = request.header(b"origin")
        if not self.service.access.is_called_rightly(request.header(b"host"), origin, connection.local):
            return FOREIGN
        if origin:
            request.cors = CORS % origin
            if request.method == b"OPTIONS" and request.header(b"access-control-request-method"):
                return Reply(204, headers=CORS_HEADERS)
        return None

    def check_sender(self, request: Request, connection: HttpConnection) -> Reply | None:
        """Does the request show a token, and has its owner asked not too much?"""
        access = self.service.access
        if access.is_open:
            connection.is_proven = True
            return None
        try:
            caller = access.recognise(request.header(b"authorization"))
        except Denied as denied:
            return self._stranger(denied)
        request.caller = connection.caller = caller
        if caller.level == NOBODY:
            return self._forbidden(1, NULL)
        connection.is_proven = True
        return None if caller.allowance.take(self.service.loop.time()) else TOO_OFTEN

    def _stranger(self, denied: Denied) -> Reply:
        if denied.is_passing:
            return refused(503, f"Not now: {denied.text}.", b"retry-after: 2\r\n", reason=denied.reason)
        said = [b'www-authenticate: Bearer realm="mcp-memory"']
        if denied.reason != "no_token":
            said.append(f'error="invalid_token", error_description="{denied.text}"'.encode())
        if self.metadata_url:
            said.append(f'resource_metadata="{self.metadata_url}", scope="{self.scope(2)}"'.encode())
        return refused(401, f"Unauthorized: {denied.text}.", b", ".join(said) + b"\r\n", reason=denied.reason)

    def _forbidden(self, level: int, ident: bytes, what: str = "anything here") -> Reply:
        """Whoever asks is known, but may not do this."""
        scope = self.scope(level)
        said = f'www-authenticate: Bearer realm="mcp-memory", error="insufficient_scope", scope="{scope}"'
        if self.metadata_url:
            said += f', resource_metadata="{self.metadata_url}"'
        why = f"Forbidden: {what} needs a token with the scope {self.scope(level).split()[-1]}."
        return refused(403, why, said.encode() + b"\r\n", ident=ident, reason="insufficient_scope")

    def scope(self, level: int) -> str:
        """The scopes that allow so much, as they are named where tokens come from."""
        oauth = self.service.access.oauth
        return oauth.scope(level) if oauth is not None else " ".join(SCOPES[:level])

    def refuse(self, reply: Reply, request: Request, connection: HttpConnection) -> None:
        """Answer with a refusal, and take note of it."""
        if reply.reason:
            self.service.meters.refusals[reply.reason] += 1
            name = request.caller.name
            self.service.audit.refused(reply.status, reply.reason, connection.address, name)
        connection.reply(reply)

    def check_scope(self, request: Request, message: Message, ident: bytes) -> Reply | None:
        """May this caller call the tool that the message names? A batch is looked through by its session."""
        caller = request.caller
        if message.method == "notifications/cancelled":
            return None
        if caller.allowance.calls >= caller.allowance.most:
            return TOO_MUCH
        if message.method == "subscriptions/listen" and caller.allowance.streams >= caller.allowance.most:
            return TOO_MUCH
        if message.method != "tools/call" or caller.level >= ALL or message.params is None:
            return None
        name = message.params.name
        tool = self.service.offer.desk.tools.get(name) if isinstance(name, str) else None
        if tool is None or tool.level <= caller.level:
            return None
        return self._forbidden(tool.level, ident, tool.name)
