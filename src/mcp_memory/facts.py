"""What is known: the four facts of a space, and the limits that keep them sane.

A fact is plain data with ids for its links. It knows no store, no wire and no clock. Facts are packed
as arrays in feeds and snapshots, so the order of fields is a format: new ones go last, with a default."""

from __future__ import annotations

import msgspec

GENERIC_TYPE = "Generic"
GENERIC_KIND = "generic"
ACTIVE = "activo"
# A relation may name an entity that nobody has created yet (the official server allows it). Its end is
# kept as an entity of this status, which no listing shows. The status is ours: callers cannot set it.
PLACEHOLDER = "placeholder"

NAME_BYTES = 1024


class Observation(msgspec.Struct, array_like=True):
    """One thing known about an entity, in free text."""

    id: int
    text: str
    created_at: str
    kind: str = GENERIC_KIND
    supersedes: int | None = None
    superseded_at: str | None = None
    similarity_flag: int = 0


class Entity(msgspec.Struct, array_like=True):
    """A named node; its observations stand in order of arrival."""

    id: int
    name: str
    entity_type: str
    status: str
    created_at: str
    updated_at: str
    observations: list[Observation]

    @property
    def is_placeholder(self) -> bool:
        return self.status == PLACEHOLDER

    def active(self) -> list[Observation]:
        return [seen for seen in self.observations if seen.superseded_at is None]

    def texts(self) -> list[str]:
        """What is believed now: the text of every observation that nothing has replaced."""
        return [seen.text for seen in self.observations if seen.superseded_at is None]


class Relation(msgspec.Struct, array_like=True):
    """A directed, typed link between two entities; an ended one stays as history."""

    id: int
    source: int
    target: int
    relation_type: str
    created_at: str
    context: str | None = None
    ended_at: str | None = None

    @property
    def is_active(self) -> bool:
        return self.ended_at is None


class Reflection(msgspec.Struct, array_like=True):
    """Prose that gives meaning to an entity, a session, a relation or everything."""

    id: int
    target_type: str
    target_id: int | None
    author: str
    content: str
    mood: str | None
    created_at: str


Fact = Entity | Observation | Relation | Reflection


class MemoryFault(Exception):
    """Something a caller can understand and act on. Its text is shown as it is."""

    code: str | None = None
    retryable = False
    message = ""  # in words, where the fault's own text is a name


class Interruption(Exception):
    """No failure of a tool: something that whoever called it must see to. Nothing has happened yet."""


class NotNow(Interruption):
    """What was asked at once cannot be done without waiting. Nothing has happened; ask again and wait."""


class UnknownEntity(MemoryFault):
    """An exact name that no entity bears."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Entity not found: {name}")
        self.name = name


class BadInput(MemoryFault):
    """Arguments that cannot be accepted, with what would be."""


# What a token may allow, each including those before it; a tool needs one of them.
SCOPES = ("read", "write", "admin")


class Limits(msgspec.Struct, frozen=True):
    """How much one call may carry or ask for. Each is a setting; the defaults are the documented ones."""

    entities: int = 50
    relations: int = 1000
    observations: int = 100
    observation_chars: int = 2000
    query_chars: int = 500
    results: int = 50
    reflection_chars: int = 20_000

    def check_count(self, what: str, count: int, most: int) -> None:
        if count > most:
            raise BadInput(f"Too many {what}: {count} > {most}. Send them in several calls.")

    def check_texts(self, texts: list[str], where: str = "") -> None:
        self.check_count(f"observations{where and f' in {where}'}", len(texts), self.observations)
        if texts and max(map(len, texts)) > self.observation_chars:
            place, size = next((i, len(t)) for i, t in enumerate(texts) if len(t) > self.observation_chars)
            raise BadInput(
                f"{where + ', o' if where else 'O'}bservation {place} too long: {size} > {self.observation_chars} "
                "characters. Split it into several observations."
            )

    def check_query(self, query: str) -> None:
        if len(query) > self.query_chars:
            raise BadInput(f"Query too long: {len(query)} > {self.query_chars} characters. Ask for less at a time.")

    def check_results(self, limit: int) -> None:
        if limit > self.results:
            raise BadInput(f"Limit too high: {limit} > {self.results}. Request fewer results.")


class Customs(msgspec.Struct, frozen=True):
    """What the people of a space have agreed on. Each is a setting; the defaults are the documented ones."""

    authors: tuple[str, ...] = ("nolan", "sofia")  # of reflections; empty: anybody
    moods: tuple[str, ...] = ("frustracion", "satisfaccion", "curiosidad", "duda", "insight")  # empty: any
    # Beyond how many observations an entity of a type may be too large; "*" is every other type.
    split_thresholds: dict[str, int] = msgspec.field(default_factory=lambda: {"Sesion": 15, "Proyecto": 25, "*": 20})

    @property
    def author(self) -> str:
        """Who reflects when nobody is named."""
        return "sofia" if not self.authors or "sofia" in self.authors else self.authors[0]


# What the official server's users may send: it has no limits of its own, these are the Rust server's.
OFFICIAL_LIMITS = Limits(entities=1000, relations=1000, observations=1000, observation_chars=65_536, query_chars=65_536)


def check_name(name: str, what: str = "name") -> None:
    """Refuse what cannot be a name: empty, or longer than the journal's 1,024 bytes. NUL comes through no door."""
    if not name:
        raise BadInput(f"The {what} must have at least one character.")
    # Four bytes a character at most: only a name of more than 256 characters needs the exact count.
    if len(name) > NAME_BYTES // 4 and len(name.encode()) > NAME_BYTES:
        raise BadInput(f"The {what} is too long: {len(name.encode())} > {NAME_BYTES} bytes. Shorten it.")
