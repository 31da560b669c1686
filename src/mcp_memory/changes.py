"""What happened: past-tense records of the feed, and the plan in which a tool proposes them.

A change carries ids and values only; when it happened and who asked stands once on its entry.
Encoded as msgpack arrays with a number for a tag, so the order of fields is the format: new fields
go last, with a default, and a number is never used again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from mcp_memory.facts import ACTIVE, GENERIC_KIND, Entity, Observation, Reflection, Relation

if TYPE_CHECKING:
    from mcp_memory.graph import Graph


# What the server does by itself after a call that added observations. It is no call of its own to undo:
# it goes with the call it followed.
FLAGGING = "flag_duplicates"


class Change(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The base of everything that can happen to facts."""


class EntityCreated(Change, frozen=True, tag=1):
    """A new entity with its first observations, which get the ids `first`, `first + 1`, …"""

    id: int
    name: str
    entity_type: str
    status: str = ACTIVE
    first: int = 0
    texts: Sequence[str] = ()
    # The placeholder that this entity takes the place of: its relations become the new one's.
    fills: int | None = None


class EntityAltered(Change, frozen=True, tag=2):
    """An entity got another type or status (None: as it was)."""

    id: int
    entity_type: str | None = None
    status: str | None = None


class EntityDeleted(Change, frozen=True, tag=3):
    """An entity went, with its observations and every relation touching it."""

    id: int


class ObservationsAdded(Change, frozen=True, tag=4):
    """New observations of one kind, with ids from `first` on."""

    entity: int
    first: int
    texts: list[str]
    kind: str = GENERIC_KIND


class ObservationSuperseded(Change, frozen=True, tag=5):
    """An observation was replaced by a newer one of the same entity."""

    entity: int
    id: int
    by: int


class ObservationsDeleted(Change, frozen=True, tag=6):
    entity: int
    ids: list[int]


class ObservationsMoved(Change, frozen=True, tag=7):
    """Observations changed owner and kept everything else: id, kind, flags, times."""

    source: int
    target: int
    ids: list[int]


class ObservationFlagged(Change, frozen=True, tag=8):
    entity: int
    id: int
    flag: int


class RelationCreated(Change, frozen=True, tag=9):
    id: int
    source: int
    target: int
    relation_type: str
    context: str | None = None


class RelationEnded(Change, frozen=True, tag=10):
    id: int


class RelationRevived(Change, frozen=True, tag=11):
    """An ended relation is true again; a context given anew replaces the old one."""

    id: int
    context: str | None = None


class RelationRepointed(Change, frozen=True, tag=12):
    """A relation got other ends (its entity was merged into another)."""

    id: int
    source: int
    target: int


class RelationDeleted(Change, frozen=True, tag=13):
    id: int


class ReflectionAdded(Change, frozen=True, tag=14):
    id: int
    target_type: str
    target_id: int | None
    author: str
    content: str
    mood: str | None = None


class EntityRestored(Change, frozen=True, tag=15):
    """An entity exactly as it was elsewhere or before, with its observations and times."""

    fact: Entity


class ObservationRestored(Change, frozen=True, tag=16):
    entity: int
    fact: Observation


class RelationRestored(Change, frozen=True, tag=17):
    fact: Relation


class ReflectionRestored(Change, frozen=True, tag=18):
    fact: Reflection


class EntityAbsorbed(Change, frozen=True, tag=19):
    """An entity went because another took its place: reflections on it and its usage pass to that one."""

    id: int
    into: int


class EntityReverted(Change, frozen=True, tag=20):
    """Type, status and time of change of an entity are again what they were."""

    id: int
    entity_type: str
    status: str
    updated_at: str


class ObservationReverted(Change, frozen=True, tag=21):
    """An observation that is there is again exactly what it was."""

    entity: int
    fact: Observation


class RelationReverted(Change, frozen=True, tag=22):
    """A relation that is there, between the same ends, is again exactly what it was."""

    fact: Relation


class ReflectionReverted(Change, frozen=True, tag=23):
    """A reflection that is there is now, or again, exactly this."""

    fact: Reflection


class ReflectionDeleted(Change, frozen=True, tag=24):
    id: int


class CallsUndone(Change, frozen=True, tag=25):
    """The changes after this one take back these calls. By itself it changes nothing."""

    calls: list[int]


# What every key of a request begins with: no text holds the first of these bytes, so entries that note a request can be
# told without decoding the others.
NOTED = b"\xfereq"


class RequestNoted(Change, frozen=True, tag=26):
    """The changes before this one were asked for by a request that may be sent again. By itself it changes nothing."""

    key: bytes
    fingerprint: bytes


AnyChange = (
    EntityCreated
    | EntityAltered
    | EntityDeleted
    | EntityAbsorbed
    | ObservationsAdded
    | ObservationSuperseded
    | ObservationsDeleted
    | ObservationsMoved
    | ObservationFlagged
    | RelationCreated
    | RelationEnded
    | RelationRevived
    | RelationRepointed
    | RelationDeleted
    | ReflectionAdded
    | EntityRestored
    | ObservationRestored
    | RelationRestored
    | ReflectionRestored
    | EntityReverted
    | ObservationReverted
    | RelationReverted
    | ReflectionReverted
    | ReflectionDeleted
    | CallsUndone
    | RequestNoted
)


class Was(msgspec.Struct, array_like=True):
    """What an entry altered, as it was before its call. What it touched and is not in here was not there."""

    entities: list[Entity] = []  # without their observations
    observations: list[tuple[int, Observation]] = []  # each with the entity it belonged to
    relations: list[Relation] = []
    reflections: list[Reflection] = []


class Entry(msgspec.Struct):
    """One row of the feed: the changes of a call, or the `part`-th piece of a very large one."""

    seq: int
    at: str
    changes: list[AnyChange]
    origin: str = ""
    tool: str = ""
    part: int = 0
    was: Was | None = None  # only where a store that keeps history is asked for it

    @property
    def call(self) -> int:
        """The number of the call that this entry is a piece of: that of its first piece."""
        return self.seq - self.part


class Plan:
    """What a writer proposes: changes, and the answer it would give once they are true.

    An answer that is a function is asked after the changes were applied, with the graph."""

    __slots__ = ("answer", "changes")

    def __init__(self, changes: list[AnyChange], answer: Any | Callable[[Graph], Any] = None) -> None:
        self.changes = changes
        self.answer = answer


encode_changes = msgspec.msgpack.Encoder().encode
decode_changes = msgspec.msgpack.Decoder(list[AnyChange]).decode
encode_was = msgspec.msgpack.Encoder().encode
decode_was = msgspec.msgpack.Decoder(Was).decode
