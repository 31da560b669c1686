"""A call that may be more than a question and an answer: it takes long, asks its user first, or is made twice."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from mcp_memory.asides import heard_by
from mcp_memory.facts import MemoryFault
from mcp_memory.losses import Unconfirmed
from mcp_memory.pace import at, brisk
from mcp_memory.wire.asking import Dialogue, confirm

if TYPE_CHECKING:
    from mcp_memory.desk import Answer
    from mcp_memory.tools.registry import Tool

ALONE = (
    "{tool} would take away {losses}, which the user must agree to, and in the middle of a batch nobody can be asked; "
    "nothing was changed. Send this call alone."
)


class Call:
    """One call of a tool, with the one who makes it at hand."""

    def __init__(self, dialogue: Dialogue, tool: Tool, arguments: bytes, origin: str) -> None:
        self.dialogue = dialogue
        self.tool = tool
        self.arguments = arguments
        self.origin = origin

    def make(self) -> Answer | None:
        """The answer, or None when it comes later, from a thread."""
        session = self.dialogue.session
        make = self._in_batch if session.in_batch else self._answer
        if not session.in_batch and (self.tool.is_errand or (self.tool.is_lengthy and session.is_busy)):
            self._begin()
            return None
        key = self.dialogue.request_key if self.tool.writes else b""
        if not key:
            return make()
        return session.offer.retries.once(self, make, wait=not session.is_hurried)

    def _in_batch(self) -> Answer | None:
        """A batch is answered as one: its calls are made where it is read, and nobody can be asked meanwhile."""
        session, offer = self.dialogue.session, self.dialogue.session.offer
        most = offer.most_lost(self.tool, self.dialogue)
        try:
            return offer.desk.call(self.tool, self.arguments, self.origin, at_once=session.is_hurried, most_lost=most)
        except Unconfirmed as stakes:
            return offer.desk.refusal(MemoryFault(ALONE.format(tool=self.tool.name, losses=stakes.losses)))

    def _answer(self) -> Answer | None:
        session, offer = self.dialogue.session, self.dialogue.session.offer
        most = offer.most_lost(self.tool, self.dialogue)
        hurried = session.is_hurried
        with at(brisk()) if self.tool.is_lengthy else nullcontext(), heard_by(self.dialogue.log):
            try:
                return offer.desk.call(self.tool, self.arguments, self.origin, at_once=hurried, most_lost=most)
            except Unconfirmed as stakes:
                losses = stakes.losses
        if not self.dialogue.era.stateless:
            self._begin()  # there it can wait for the user
            return None
        try:
            confirm(self.dialogue, self.tool.name, losses)
        except MemoryFault as fault:
            return offer.desk.refusal(fault)
        return offer.desk.call(self.tool, self.arguments, self.origin, at_once=hurried, most_lost=losses.total)

    def _begin(self) -> None:
        from mcp_memory.wire.errands import LongCall

        self.dialogue.session.begin(LongCall(self))
