"""Who asks: by name, as the history shows it, and in which of their sessions.

Two sessions of one client bear one name. What a search showed in the one says nothing of what is opened in the other,
so usage goes by the session; everything else goes by the name."""

from __future__ import annotations

STREAMS = "stdio as "


class Origin(str):
    """The name of whoever asks, with their session."""

    session: str

    def __new__(cls, name: str, session: str) -> Origin:
        made = super().__new__(cls, name)
        made.session = session
        return made


def window(user: str, number: str) -> str:
    """How a process on standard streams is named: whose it is, and which of theirs."""
    return f"{STREAMS}{user} {number}"


def person_of(origin: str) -> str:
    """Who asks, from whichever of their windows: a process that was started again is another one."""
    return origin.rpartition(" ")[0] if STREAMS in origin else str(origin)


def session_of(origin: str) -> str:
    """In which session somebody asks; of who has none, the name."""
    return origin.session if isinstance(origin, Origin) else origin
