"""Hands vectors, topics, usage and what else they need to the tools that look after a space.

The law: facts are read under the space's lock, and thought about outside it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING

from mcp_memory.curation.curator import Curator, Meanings
from mcp_memory.pace import reached
from mcp_memory.search.times import seconds_of

if TYPE_CHECKING:
    from mcp_memory.curation.topics import Topics
    from mcp_memory.embedding.engine import Engine
    from mcp_memory.embedding.numerics import Floats
    from mcp_memory.search.limbic import Use
    from mcp_memory.space import Space

# A report waits so long for flags, if what is to be compared is a matter of a moment.
REPORT_SECONDS = 2.0
# Who waits for the graph is awake after so long.
PAUSE_SECONDS = 0.0001
# Texts that one reading call may give to the model; of more it says that they are still to be read.
MOST_ENCODED = 500
# Entities whose topics are kept at hand: of 40 observations of 100 letters each, some 6 MB.
MOST_TOPICS = 1000
BY_WORDS = ""  # what stands for a model where there is none
# What giving a text to the model takes, in steps of a pace: a millisecond. And waiting for it.
STEPS_EACH, STEPS_OF_WAITING = 1_000, 10_000
# Texts that the model gets at a time behind the replies: a search waits for no more than that.
LOT = 64


def curator_of(space: Space) -> Curator:
    """Somebody who looks after this space, for one call."""

    return Curator(
        facts=space.reading,
        pause=pause,
        customs=space.customs,
        meanings=lambda texts: meanings_of(space, texts),
        topics=lambda texts, may_read: _topics(space, texts, may_read),
        nearness=lambda query, ids: _nearness(space, query, ids),
        uses=lambda: _uses(space),
        missing=lambda done: _missing(space, done),
        examined=lambda: _examined(space),
        now=lambda: seconds_of(space.clock()) or time.time(),
        name_once=lambda entity: _name_once(space, entity),
    )


def _name_once(space: Space, entity: int) -> str | None:
    if space.history is None:
        return None
    space.store.settle()  # who is gone is told by projections
    return space.history.name_of(entity)


def _uses(space: Space) -> Mapping[str, Use]:
    """What was served or opened, up to this moment."""
    from mcp_memory.search.limbic import Use

    found = dict(space.usage.shown())
    for name, count in space.noting.openings.waiting().items():
        known = found.get(name) or Use()
        found[name] = Use(known.count + count, time.time(), known.days)
    return found


def _topics(space: Space, texts: Sequence[str], may_read: bool) -> Topics:
    """What these texts are about; `may_read`: those that have no vector yet are given to the model first.

    The same texts are about the same the next time: a report comes every week, and most of what is large has not
    changed since."""
    from mcp_memory.curation.topics import topics_of

    engine, said = chosen_engine(space), tuple(texts)
    known = None if engine is None else space.topics.get((engine.stamp, said))
    if known is not None:
        return known
    meanings = meanings_of(space, texts, most=MOST_ENCODED if may_read else 0)
    if engine is not None and meanings is not None and meanings.is_complete:
        found = topics_of(texts, meanings.vectors, meanings.model)
        key = engine.stamp, said
    else:
        found = space.topics.get((BY_WORDS, said)) or topics_of(texts)
        key = BY_WORDS, said
    if len(space.topics) >= MOST_TOPICS:
        space.topics.clear()
    space.topics[key] = found
    return found


def pause() -> None:
    time.sleep(PAUSE_SECONDS)


def _examined(space: Space) -> float:
    """Up to which observation duplicates were looked for. inf: this format has no place for flags."""
    from mcp_memory.caretaker import MOST_WAITED_FOR
    from mcp_memory.stores.examined import examined_of

    caretaker = space.caretaker
    if caretaker is None:
        kept = examined_of(space.store)
        return inf if kept is None else kept.load().last or 0
    # Loading a model takes a second or so: nobody waits for that, and the report says what is pending.
    if not caretaker.hurry(0) and (is_ready(space) or chosen_engine(space) is None):
        reached(0, None, "comparing what is new", STEPS_OF_WAITING)
        caretaker.hurry(REPORT_SECONDS, MOST_WAITED_FOR)
    return caretaker.last


def chosen_engine(space: Space) -> Engine | None:
    from mcp_memory.embedding import engine

    return None if space.model == "none" else engine(space.model)


def is_ready(space: Space) -> bool:
    """Is the model loaded, so that a vector is a matter of milliseconds?"""
    if "mcp_memory.embedding.engine" not in sys.modules:
        return False
    chosen = chosen_engine(space)
    return chosen is not None and chosen.loaded


def meanings_of(
    space: Space, texts: Sequence[str], keep: Callable[[], bool] | None = None, most: int = MOST_ENCODED
) -> Meanings | None:
    """The vectors of these texts: those that are kept are read, the others made. They are kept in their turn while
    `keep` says so; without it nothing is written, and at `most` so many are made."""
    model = chosen_engine(space)
    if model is None:
        return None
    from mcp_memory.embedding.numerics import numpy
    from mcp_memory.search.vectors import OBSERVATION, Row, key_of
    from mcp_memory.stores.vectors import vectors_of

    np, home = numpy(), vectors_of(space.store, keep is not None)
    keys = [key_of(text) for text in texts]
    kept = home.find(model.stamp, list(dict.fromkeys(keys)))
    missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in kept}
    made: dict[int, Floats] = {}
    for start in range(0, len(missing) if keep is not None else min(len(missing), most), LOT):
        lot = list(missing)[start : start + LOT]
        reached(start, len(missing), "reading observations", STEPS_EACH * len(lot))
        made |= zip(lot, model.encode([missing[key] for key in lot]), strict=True)
        if keep is not None:
            if not keep():
                break
            rows = [Row(0, key, made[key].astype("<f2").tobytes()) for key in lot]
            home.keep(model.stamp, OBSERVATION, rows, are_new=True)
    vectors = np.full((len(texts), model.dimension), np.nan, np.float32)
    for row, key in enumerate(keys):
        if key in kept:
            vectors[row] = np.frombuffer(kept[key], "<f2")
        elif key in made:
            vectors[row] = made[key]
    return Meanings(vectors, model.model, len(made) == len(missing))


def _nearness(space: Space, query: str, ids: Sequence[int]) -> dict[int, float]:
    """The cosines of these reflections with a question, of those that have a vector. Without any lock held."""
    space.meaning.prepare()
    vectors = space.vectors
    if vectors is None:
        return {}
    found, missing = vectors.of_reflections(ids)
    cosines = (found @ vectors.engine.encode([query], "query")[0]).tolist()
    absent = set(missing)
    return {one: cosine for one, cosine in zip(ids, cosines, strict=True) if one not in absent}


def _missing(space: Space, done: str) -> str:
    from mcp_memory.embedding import why_not
    from mcp_memory.embedding.engine import MISSING

    if chosen_engine(space) is not None:
        return f"{done} by words where no model has read the text yet; ask again in a while."
    reason = "The setting model is none." if space.model == "none" else why_not(space.model) or MISSING
    return f"{done} by words only. {reason}"
