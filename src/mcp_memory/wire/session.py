"""A connection's side of the protocol, without the connection: a line in, the lines to send out.

Calls take effect in the order they came. A long call is handed to the transport (`errand_begun`, then
`work` in a thread) and everything that looks at the space waits behind it; the rest goes on. So is a call
that would have to wait for another program's lock and, where many clients share one loop, for any lock or file."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from mcp_memory.facts import SCOPES, NotNow
from mcp_memory.origins import Origin
from mcp_memory.pace import at, here
from mcp_memory.wire.asking import Asked, Dialogue, InputRequired, Unable
from mcp_memory.wire.eras import ALWAYS, NEWEST_HANDSHAKE, STATELESS_ERAS, STATELESS_ONLY, STATELESS_VERSIONS, Era
from mcp_memory.wire.jsonrpc import (
    ABSENT,
    ID_STARTS,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MOST_BYTES,
    NULL,
    PARSE_ERROR,
    Fault,
    Message,
    Meta,
    batch_in,
    decode,
    encode,
    fault_in,
    params_of,
    refusal,
    reply,
    salvaged_id,
    value_of,
)
from mcp_memory.wire.methods import HANDLERS, end_of_stream, told, wrote
from mcp_memory.wire.news import LISTS, Interest

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_memory.tools.registry import Tool
    from mcp_memory.wire.errands import Errands, LongCall, Send
    from mcp_memory.wire.lines import TooLong
    from mcp_memory.wire.offer import Offer

UNSUPPORTED_VERSION = -32022
META = "io.modelcontextprotocol/"
BOM = b"\xef\xbb\xbf"
IN_ORDER = frozenset({"tools/call", "resources/read", "prompts/get", "completion/complete"})  # look at the space
STIR_SECONDS = 0.25  # so often whoever waits for an answer looks whether he still should
ERAS_AS_SENT = {encode(version): era for version, era in STATELESS_ERAS.items()}


class Peer:
    """What is known of the client of a conversation; all its forks share it."""

    def __init__(self, offer: Offer) -> None:
        self._offer = offer
        self.capabilities: Any = {}
        self.log_level = ""  # as it was set; nothing until then
        self.asked = Asked()  # what it has not answered yet

    # Made when somebody wants them: over HTTP there is a peer for every stateless request.

    @cached_property
    def number(self) -> str:
        """Tells this conversation from others of the same client."""
        return os.urandom(6).hex()

    @cached_property
    def interest(self) -> Interest:
        """What it subscribed to after a handshake."""
        return Interest(self._offer)


class Session:
    """One client's conversation."""

    def __init__(
        self, offer: Offer, transport: str = "stdio", *, at_once: bool = False, level: int = len(SCOPES), shown: int = 0
    ) -> None:
        """`at_once`: whoever hands us lines must not be kept waiting. `level`: how many of SCOPES it has. `shown`: how
        many of them what it is shown may need, if that is more."""
        self.offer = offer
        self.level = level
        self.shown = max(level, shown)
        self.transport = transport
        self.at_once = at_once
        self.era: Era = offer.eras[NEWEST_HANDSHAKE]
        self.origin = transport  # who asks, for the history
        self.peer = Peer(offer)
        self.streams: dict[Any, Interest] = {}  # open `listen`s
        self.can_send = True  # may something be said before an answer?
        self.in_batch = False
        self.errand_begun = False  # a long call wants a thread: clear this and run `work` in one
        self.step_aside: Callable[[], None] = _stay  # called where `work` waits for the client
        self._errands: Errands | None = None  # while a long call runs
        self.shook_hands = False
        self._stateless = False
        self._last_sender: tuple[bytes, str] = (b"", transport)

    # ── lines ────────────────────────────────────────────────────────────────────────────────────

    def receive(self, line: bytes) -> list[bytes]:
        """What to send now that this line, without its end, has come in. Never raises."""
        try:
            message = decode(line)
        except (ValueError, RecursionError):
            return self._receive_other(line)
        return self.accept(message, line)

    def accept(self, message: Message, line: bytes) -> list[bytes]:
        """`receive` for a line that has been decoded into this message."""
        if self._errands is not None and message.method in IN_ORDER and message.id is not ABSENT:
            return self._queue(message, line)
        return self._answer(message, line)

    def refuse(self, line: TooLong) -> list[bytes]:
        """The answer to a line that was too long to be kept."""
        text = f"Invalid request: the line is longer than {MOST_BYTES >> 20} MiB. Send less in one call."
        return [refusal(Fault(INVALID_REQUEST, text, salvaged_id(line.head, line.tail)))]

    def fork(self) -> Session:
        """Another line of conversation with the same client: same revision, same name, an order of its own."""
        fork = Session(self.offer, self.transport, at_once=self.at_once, level=self.level, shown=self.shown)
        fork.era, fork.origin = self.era, self.origin
        fork.peer, fork.shook_hands = self.peer, self.shook_hands
        return fork

    def end(self) -> list[bytes]:
        """The last words: every open stream is told that it ends."""
        said = [end_of_stream(self, interest.ident) for interest in self.streams.values()]
        self.streams.clear()
        return said

    def _receive_other(self, line: bytes) -> list[bytes]:
        if line.startswith(BOM):
            return self.receive(line[len(BOM) :])
        if self.peer.asked and self.peer.asked.take(line):
            return []
        fault: Fault | None
        if (members := batch_in(line)) is None:
            fault = fault_in(line)
        elif self.era.batches and self.shook_hands:
            return self._queue(None, line) if self._errands is not None else self._take_batch(line, members)
        else:
            text = "Invalid request: this revision of the protocol has no batches; send one message a line"
            fault = Fault(INVALID_REQUEST, text)
        if fault is None or (self.offer.official and (fault.code != PARSE_ERROR or fault.ident == NULL)):
            return []  # the official server answers only what it can read
        return [refusal(fault)]

    def _take_batch(self, line: bytes, members: list[bytes]) -> list[bytes]:
        # It is answered whole: where one member may not wait, none can be put off alone.
        if members and (self.at_once or here() is not None):
            return self._defer(None, line)
        return self._answer_batch(members)

    def _answer_batch(self, members: list[bytes]) -> list[bytes]:
        if not members:
            return [refusal(Fault(INVALID_REQUEST, "Invalid request: the batch is empty"))]
        before: list[bytes] = []
        replies: list[bytes] = []
        self.in_batch = True
        for member in members:
            said = self._answer_member(member)
            before += said[:-1]
            replies += said[-1:]
        self.in_batch = False
        return [*before, b"[" + b",".join(replies) + b"]"] if replies else before

    def _answer_member(self, member: bytes) -> list[bytes]:
        try:
            message = decode(member)
        except (ValueError, RecursionError):
            fault = fault_in(member)
            return [] if fault is None else [refusal(fault)]
        if message.method == "initialize":
            return [
                refusal(Fault(INVALID_REQUEST, "Invalid request: initialize in a batch", bytes(message.id) or NULL))
            ]
        return self._answer(message, member)

    # ── requests ─────────────────────────────────────────────────────────────────────────────────

    def _answer(self, message: Message, line: bytes) -> list[bytes]:
        ident = bytes(message.id)
        if not ident:
            self._notice(message.method, line)
            return []
        try:
            if ident[0] not in ID_STARTS:
                ident = NULL
                raise Fault(INVALID_REQUEST, "Invalid request: the id must be a string or a number")
            era = self._era_of(message)
            if message.method not in era.methods:
                unknown = "Method not found" + ("" if self.offer.official else f": {message.method}")
                raise Fault(METHOD_NOT_FOUND, unknown)
            return HANDLERS[message.method](self, era, ident, message, line)
        except NotNow:
            return self._defer(message, line)
        except InputRequired as need:
            return [reply(ident, Dialogue(self, self._era_of(message), message, line).required(need))]
        except Exception as error:
            return self._refused(error, ident, message.method)

    def _refused(self, error: Exception, ident: bytes, method: str) -> list[bytes]:
        """The answer to a request that could not be acted on."""
        if isinstance(error, Unable):
            error = error.fault()
        if not isinstance(error, Fault):
            error = Fault(INTERNAL_ERROR, _explained(method, error))
        elif self.offer.official and error.code == INVALID_REQUEST:
            return []  # as the official server does
        error.ident = ident
        return [refusal(error)]

    def _era_of(self, message: Message) -> Era:
        """The revision a request is written in: the one it names, or the one hands were shaken on."""
        meta = message.params.meta if message.params is not None else None
        if self.offer.official or message.method == "initialize":
            return self.era
        if meta is not None and (meta.version is not ABSENT or meta.capabilities is not ABSENT):
            return self._named_era(meta)
        if not self.shook_hands and (
            message.method in STATELESS_ONLY or (self._stateless and message.method in ALWAYS)
        ):
            raise Fault(
                INVALID_PARAMS,
                f"Invalid params: _meta must hold {META}protocolVersion and {META}clientCapabilities "
                "(or begin with initialize)",
            )
        return self.era

    def _named_era(self, meta: Meta) -> Era:
        version = bytes(meta.version)
        if version[:1] != b'"':
            raise Fault(INVALID_PARAMS, f"Invalid params: _meta must hold {META}protocolVersion, a string")
        if bytes(meta.capabilities)[:1] != b"{":
            raise Fault(INVALID_PARAMS, f"Invalid params: _meta must hold {META}clientCapabilities, an object")
        era = ERAS_AS_SENT.get(version)
        if era is None:
            data = {"supported": STATELESS_VERSIONS, "requested": msgspec.Raw(version)}
            raise Fault(UNSUPPORTED_VERSION, "Unsupported protocol version", data=data)
        self._stateless = True
        return era

    def _notice(self, method: str, line: bytes) -> None:
        if method != "notifications/cancelled":
            return
        try:
            wanted = params_of(line).get("requestId")
        except Fault:
            return
        if isinstance(wanted, str | int | float):
            self.streams.pop(wanted, None)
            errands = self._errands
            if errands is not None:
                with errands.lock:
                    errands.withdraw(wanted)

    # ── who asks ─────────────────────────────────────────────────────────────────────────────────

    def shake_hands(self, era: Era, client: Any, capabilities: Any) -> None:
        """From here on this is the revision spoken, and this the client."""
        self.era = era
        self.peer.capabilities = capabilities
        self.peer.interest = Interest(self.offer, lists=() if self.offer.official else LISTS)
        name = self._named(client)
        self.origin = Origin(name, f"{name} #{self.peer.number}")
        self.shook_hands = True

    def sender(self, meta: Meta) -> str:
        """Who sent a request that names its client; others are whoever shook hands."""
        if meta.client is ABSENT:
            return self.origin
        client = bytes(meta.client)
        if client != self._last_sender[0]:
            self._last_sender = (client, self._named(value_of(client)))
        return self._last_sender[1]

    def _named(self, client: Any) -> str:
        if not isinstance(client, dict) or not isinstance(client.get("name"), str):
            return self.transport
        version = client.get("version")
        name = f"{client['name']}/{version}" if isinstance(version, str) else client["name"]
        return f"{name[:200]} {self.transport}"

    # ── long calls ───────────────────────────────────────────────────────────────────────────────

    @property
    def is_busy(self) -> bool:
        return self._errands is not None

    @property
    def is_hurried(self) -> bool:
        """Must a call be done at once? In the thread of `work` there is time."""
        return self.at_once and self._errands is None

    @property
    def only_reads(self) -> bool:
        """Does what `work` begins with read, and neither write, which others may keep waiting, nor look after the
        memory, for which there are turns of its own?"""
        errands = self._errands
        if errands is None:
            return False
        tool = errands.running.tool if errands.running is not None else self._wanted(errands.waiting[0][0])
        return tool is None or not (tool.writes or tool.is_heavy or tool.is_care)

    def _wanted(self, message: Message | None) -> Tool | None:
        params = None if message is None or message.method != "tools/call" else message.params
        name = None if params is None else params.name
        return self.offer.desk.tools.get(name) if isinstance(name, str) else None

    @property
    def waiting_bytes(self) -> int:
        """How much waits behind what runs."""
        errands = self._errands
        return 0 if errands is None else errands.bytes

    def _defer(self, message: Message | None, line: bytes) -> list[bytes]:
        """What cannot be done at once is done in `work`, and everything after it."""
        from mcp_memory.wire.errands import Errands

        errands = Errands()
        errands.wait(message, line)
        self._errands = errands
        self.errand_begun = True
        return []

    def begin(self, call: LongCall) -> None:
        """A long call begins: in `work`, which may be running already."""
        if self._errands is not None:
            if self._errands.is_unwanted:
                call.withdraw()
            self._errands.running = call
            return
        from mcp_memory.wire.errands import Errands

        self._errands = Errands(call)
        self.errand_begun = True

    def work(self, send: Send) -> None:
        """Run the long call that began, then what came in meanwhile. For a thread of its own."""
        errands = self._errands
        if errands is None:
            return
        with at(errands.pace):
            while True:
                if (call := errands.running) is not None:
                    send(self._run(call, send))
                    errands.running = None
                    continue
                with errands.lock:
                    if not errands.waiting:
                        self._errands = None
                        return
                    message, line = errands.next()
                send(self._taken_up(errands, message, line))

    def _taken_up(self, errands: Errands, message: Message | None, line: bytes) -> list[bytes]:
        """What to say to something that had to wait; to what was withdrawn meanwhile nothing but its notices."""
        said = self._answer_batch(batch_in(line) or []) if message is None else self._answer(message, line)
        return said[:-1] if errands.is_unwanted else said

    def _run(self, call: LongCall, send: Send) -> list[bytes]:
        call.dialogue.send = send
        try:
            answer = call.make(self.offer)
        except InputRequired as need:
            return [] if call.unwanted else [reply(call.ident, call.dialogue.required(need))]
        except Exception as error:
            return [] if call.unwanted else self._refused(error, call.ident, "tools/call")
        if answer is None or call.unwanted:
            return wrote(self) if answer is not None and answer.changed else []
        return told(self, call.era, call.ident, answer)

    def stir(self) -> None:
        """Something came that a waiting call may wait for."""
        if self._errands is not None:
            self._errands.stirred.set()

    def work_meanwhile(self, send: Send) -> None:
        """For a call that waits for an answer: let one that waits behind it pass, or wait a moment.

        Nothing of the waiting call has happened yet, so that nothing is out of order."""
        errands = self._errands
        if errands is None:
            raise RuntimeError("only a call in a thread of its own can wait")
        with errands.lock:
            passing = errands.next() if errands.waiting else None
        if passing is None:
            self.step_aside()
            errands.stirred.wait(STIR_SECONDS)
            errands.stirred.clear()
            return
        message, line = passing
        mine = errands.running
        send(self._taken_up(errands, message, line))
        if (call := errands.running) is not mine and call is not None:
            send(self._run(call, send))
            errands.running = mine

    def give_up(self) -> None:
        """Ask the running long call to stop, and what waits for another program; all are still answered."""
        errands = self._errands
        if errands is not None:
            errands.hurry()

    def _queue(self, message: Message | None, line: bytes) -> list[bytes]:
        errands = self._errands
        if errands is not None:
            with errands.lock:
                if errands is self._errands:
                    try:
                        errands.wait(message, line)
                    except Fault as fault:
                        fault.ident = bytes(message.id) if message is not None else NULL
                        return [refusal(fault)]
                    return []
        # It ended while we looked.
        if message is None:
            return self._take_batch(line, batch_in(line) or [])
        return self._defer(message, line) if self.at_once else self._answer(message, line)


def _stay() -> None:
    """Nobody waits behind what is begun."""


def _explained(method: str, fault: Exception) -> str:
    from mcp_memory.facts import MemoryFault

    if isinstance(fault, MemoryFault):
        return str(fault)
    import logging

    logging.getLogger("mcp_memory").error("%s failed", method, exc_info=fault)
    return f"Internal error in {method}; the log on stderr says more."
