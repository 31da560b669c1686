"""Looking after a space: what its tools may touch, put together from the parts of the space."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mcp_memory.curation.curator import Curator, Meanings

if TYPE_CHECKING:
    from mcp_memory.embedding.numerics import Floats
    from mcp_memory.search.limbic import Use
    from mcp_memory.space import Space


def curator_of(space: Space) -> Curator:
    """Somebody who looks after this space, for one call."""

    def uses() -> Mapping[str, Use]:
        return space.usage.shown()

    return Curator(
        facts=space.facts,
        customs=space.customs,
        meanings=lambda ids, texts: _encoded(texts),
        thoughts=lambda ids, texts: _encoded(texts),
        question=_question,
        uses=uses,
        missing=_missing,
        pending=lambda: 0,
        now=time.time,
    )


def _encoded(texts: Sequence[str]) -> Meanings | None:
    from mcp_memory.embedding.engine import engine

    model = engine()
    return None if model is None else Meanings(model.encode(texts), model.model)


def _question(text: str) -> Floats | None:
    from mcp_memory.embedding.engine import engine

    model = engine()
    return None if model is None else model.encode([text], "query")[0]


def _missing() -> str:
    from mcp_memory.embedding.engine import MISSING

    return f"Compared by words only. {MISSING}"
