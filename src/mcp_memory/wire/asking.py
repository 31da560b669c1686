"""Asking the client something in the middle of a call: its user, its model, its roots.

After a handshake the question is a request of ours, and the call waits for the answer. Without one, the
call is answered with what it needs to know, and made again by the client with the answers; until it has
them, a call changes nothing. Either way a tool says `ask` and gets answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from mcp_memory.facts import Interruption, MemoryFault
from mcp_memory.wire.jsonrpc import INVALID_PARAMS, Fault, Message, encode, params_of, value_of

if TYPE_CHECKING:
    from mcp_memory.errand import Errand
    from mcp_memory.losses import Losses
    from mcp_memory.wire.eras import Era
    from mcp_memory.wire.session import Session

MISSING_CAPABILITY = -32021
# What a client must have declared to be asked this.
NEEDS = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
UNTOLD = "info"  # the level of a client that shook hands and did not say one
ANSWER_SECONDS = 600.0  # so long a person may think; then the answer is no
MOST_OPEN = 100


class Question(msgspec.Struct, frozen=True):
    """A request to the client."""

    method: str
    params: dict[str, Any] = {}


class InputRequired(Interruption):
    """The call can only go on with answers to these; `state` is what to bring back with them."""

    def __init__(self, questions: Mapping[str, Question], state: Any) -> None:
        super().__init__("input required")
        self.questions = questions
        self.state = state


class Unable(Interruption):
    """The client cannot be asked what the call needs to know."""

    def __init__(self, needs: set[str]) -> None:
        super().__init__(f"The client did not declare what this needs: {', '.join(sorted(needs))}.")
        self.needs = needs

    def fault(self) -> Fault:
        data: dict[str, Any] = {"requiredCapabilities": {need: {} for need in sorted(self.needs)}}
        return Fault(MISSING_CAPABILITY, str(self), data=data)


class Declined(MemoryFault):
    """Whoever was asked did not agree."""


def can_ask(capabilities: Any, method: str) -> bool:
    """Do these capabilities of a client say that it answers such a request?"""
    declared = capabilities.get(NEEDS[method]) if isinstance(capabilities, dict) else None
    if not isinstance(declared, dict):
        return False
    # One that only opens web pages for its user cannot show a question.
    return method != "elicitation/create" or "url" not in declared or "form" in declared


# ── questions of ours, after a handshake ─────────────────────────────────────────────────────────


class Slot:
    """Where one answer arrives."""

    def __init__(self, arrived: Callable[[], None]) -> None:
        self.arrived = arrived
        self.answer: Any = None
        self.is_filled = False


class Asked:
    """The questions that a client has not answered yet, by the id of our request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, Slot] = {}
        self._last = 0

    def __bool__(self) -> bool:
        return bool(self._open)

    def put(self, question: Question, slot: Slot) -> tuple[str, bytes]:
        """The id and the line of a request for this."""
        with self._lock:
            if len(self._open) >= MOST_OPEN:
                raise MemoryFault("Too many questions are waiting for an answer. Answer those first.")
            self._last += 1
            ident = f"ask-{self._last}"
            self._open[ident] = slot
        # The id stands last: what begins like a notice is sent like one.
        return ident, encode({"jsonrpc": "2.0", "method": question.method, "params": question.params, "id": ident})

    def take(self, line: bytes) -> bool:
        """Is this line an answer that somebody waits for? Then he has it now."""
        try:
            reply = msgspec.json.decode(line)
        except (ValueError, RecursionError):
            return False
        ident = reply.get("id") if isinstance(reply, dict) else None
        with self._lock:
            slot = self._open.pop(ident, None) if isinstance(ident, str) else None
        if slot is None:
            return False
        slot.answer = reply.get("result")
        slot.is_filled = True
        slot.arrived()
        return True

    def forget(self, ident: str) -> None:
        with self._lock:
            self._open.pop(ident, None)


# ── a call's side of it ──────────────────────────────────────────────────────────────────────────


class Dialogue:
    """What a running call may say to its client, and ask it, beside its answer."""

    def __init__(self, session: Session, era: Era, message: Message, line: bytes) -> None:
        self.session = session
        self.era = era
        self.send: Callable[[list[bytes]], None] | None = None
        self.said: list[bytes] = []  # what goes out before the answer, where nothing can be sent meanwhile
        self.errand: Errand | None = None
        self.message = message
        self.meta = message.params.meta if message.params is not None else None
        self._line = line

    @property
    def request_key(self) -> bytes:
        """What the client calls this request by, however often it sends it."""
        return b"" if self.meta is None else bytes(self.meta.request_key)

    @property
    def _purpose(self) -> bytes:
        """What must be the same when a call is made again with answers."""
        params = self.message.params
        if params is None:
            return self.message.method.encode()
        return encode([self.message.method, params.name, params.uri, msgspec.Raw(bytes(params.arguments) or b"{}")])

    @property
    def capabilities(self) -> Any:
        if not self.era.stateless:
            return self.session.peer.capabilities
        return value_of(bytes(self.meta.capabilities)) if self.meta is not None else {}

    def can_ask(self, method: str) -> bool:
        if not self.era.stateless and (self.era.version < ASKING_SINCE or not self.session.can_send):
            return False
        return can_ask(self.capabilities, method)

    # ── saying ───────────────────────────────────────────────────────────────────────────────────

    def log(self, level: str, text: str) -> None:
        if not self._hears(level):
            return
        from mcp_memory.quoting import visible
        from mcp_memory.wire.jsonrpc import notification

        fields = {"level": level, "logger": "mcp-memory", "data": visible(text)}
        line = notification("notifications/message", encode(fields))
        if self.send is None:
            self.said.append(line)
        else:
            self.send([line])

    def _hears(self, level: str) -> bool:
        if not self.era.stateless:
            wanted = self.session.peer.log_level or UNTOLD
        else:
            said = bytes(self.meta.log_level) if self.meta is not None else b""
            wanted = value_of(said) if said else ""
        return wanted in LEVELS and LEVELS.index(level) >= LEVELS.index(wanted)

    # ── asking ───────────────────────────────────────────────────────────────────────────────────

    def ask(self, questions: Mapping[str, Question], state: Any = None, *, sealed: bool = False) -> dict[str, Any]:
        """The answers by key. `sealed`: accept only answers to what we have asked in this very call;
        `state` is what `brought` finds when they come."""
        lacking = {NEEDS[each.method] for each in questions.values() if not self.can_ask(each.method)}
        if lacking:
            raise Unable(lacking)
        if not self.era.stateless:
            return self._wait_for(questions)
        params = params_of(self._line)
        answers = params.get("inputResponses")
        if "inputResponses" in params and not _are_answers(answers):
            raise Fault(INVALID_PARAMS, "Invalid params: inputResponses must hold an object for each key")
        brought = self.brought()
        known = {**(brought["answers"] if brought else {}), **(answers or {})}
        if (sealed and brought is None) or not questions.keys() <= known.keys():
            raise InputRequired(questions, {"answers": known, "state": state})
        return {key: known[key] for key in questions}

    def brought(self) -> Any:
        """The state that came back with the answers; None where there is none, a Fault where it is not ours."""
        text = params_of(self._line).get("requestState") if b'"requestState"' in self._line else None
        return None if text is None else self.session.offer.sealer.open(text, self._purpose)

    def required(self, need: InputRequired) -> bytes:
        """The result that says what is needed to go on."""
        asked = {key: {"method": each.method, "params": each.params} for key, each in need.questions.items()}
        state = self.session.offer.sealer.seal(need.state, self._purpose)
        fields = {"inputRequests": asked, "requestState": state, **self.session.offer.said_at_the_end}
        return encode({**fields, "resultType": "input_required"})

    def _wait_for(self, questions: Mapping[str, Question]) -> dict[str, Any]:
        assert self.send is not None
        until = time.monotonic() + ANSWER_SECONDS
        slots: dict[str, Slot] = {}
        idents = []
        try:
            for key, question in questions.items():
                slots[key] = Slot(self.session.stir)
                ident, line = self.session.peer.asked.put(question, slots[key])
                idents.append(ident)
                self.send([line])
            while not all(slot.is_filled for slot in slots.values()):
                if self.errand is not None:
                    self.errand.check()
                if time.monotonic() > until:
                    raise Declined("Nobody answered the question in time; nothing was changed.")
                self.session.work_meanwhile(self.send)
        finally:
            for ident in idents:
                self.session.peer.asked.forget(ident)
        return {key: slot.answer if isinstance(slot.answer, dict) else {} for key, slot in slots.items()}


ASKING_SINCE = "2024-11-05"


def _are_answers(answers: Any) -> bool:
    return isinstance(answers, dict) and all(isinstance(answer, dict) for answer in answers.values())


# ── confirming ───────────────────────────────────────────────────────────────────────────────────


def confirm(dialogue: Dialogue, tool: str, losses: Losses) -> None:
    """Have the user agree to what a call would take away; Declined if he does not."""
    verb = "merge" if tool.startswith("merge") else "delete"
    text = f"{tool} would {verb} {losses}. Go on?"
    schema = {
        "type": "object",
        "properties": {"confirm": {"type": "boolean", "title": f"Yes, {verb} them", "default": False}},
        "required": ["confirm"],
    }
    question = Question("elicitation/create", {"mode": "form", "message": text, "requestedSchema": schema})
    if dialogue.era.version < "2025-11-25":
        del question.params["mode"]
    brought = dialogue.brought() if dialogue.era.stateless else None
    if brought is not None and brought["state"] < losses.total:  # it has grown since
        raise InputRequired({"confirm": question}, {"answers": {}, "state": losses.total})
    answer = dialogue.ask({"confirm": question}, losses.total, sealed=True)["confirm"]
    content = answer.get("content")
    if answer.get("action") != "accept" or not isinstance(content, dict) or content.get("confirm") is not True:
        raise Declined(f"The user did not agree that {tool} takes away {losses}; nothing was changed.")
