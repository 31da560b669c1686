"""How well duplicates are told from the rest, and topics from each other: `.venv-dev/bin/python bench/duplicates.py`.

Over the labelled pairs of bench/pairs.py and every model that is here: precision and recall of the flag, at the
documented cosine as it is and on the model's own scale. A contradicting pair that is flagged is wrong as a
duplicate, but worth somebody's look; both counts are printed. Topics are judged by pairs: of two observations that
were put together, how many belong together (precision), and of those that belong together, how many were."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

from pairs import CONTRADICTING, DUPLICATE, NEAR, PAIRS, TOPICS, UNRELATED

from mcp_memory.curation import duplicates, topics
from mcp_memory.curation.duplicates import SAME, SAME_OF_MODEL, compare, difference
from mcp_memory.curation.topics import TOGETHER, TOGETHER_OF_MODEL, topics_of
from mcp_memory.embedding.engine import Engine, engine_of
from mcp_memory.embedding.models import MODELS

KINDS = (DUPLICATE, NEAR, CONTRADICTING, UNRELATED)


def flags(engine: Engine | None, same: float) -> tuple[Counter[str], Counter[str]]:
    """How many pairs of each kind are flagged when this cosine of the model is the documented one; and how many of
    those are marked as differing."""
    name = engine.model if engine else ""
    before = dict(SAME_OF_MODEL)
    duplicates.SAME_OF_MODEL = {name: same}
    flagged: Counter[str] = Counter()
    differing: Counter[str] = Counter()
    for kind, one, other in PAIRS:
        vectors = engine.encode([one, other]) if engine else None
        if compare([one, other], vectors, model=name).total:
            flagged[kind] += 1
            differing[kind] += difference(one, other) is not None
    duplicates.SAME_OF_MODEL = before
    return flagged, differing


def told(what: str, flagged: Counter[str], differing: Counter[str]) -> None:
    total = Counter(kind for kind, _, _ in PAIRS)
    right, found = flagged[DUPLICATE], sum(flagged.values())
    worth = right + flagged[CONTRADICTING]
    counts = "  ".join(f"{kind} {flagged[kind]:2}/{total[kind]}" for kind in KINDS)
    precision, recall = right / found if found else 0, right / total[DUPLICATE]
    unmarked = found - sum(differing.values())
    of_unmarked = (right - differing[DUPLICATE]) / unmarked if unmarked else 0
    print(f"{what:>44}  precision {precision:.2f}  recall {recall:.2f}  worth a look {worth / max(found, 1):.2f}")
    print(f"{'':>44}  {counts}  precision where nothing `differs` {of_unmarked:.2f}")


def grouped(engine: Engine | None, together: float) -> tuple[float, float]:
    """Precision and recall of pairs that were put into one topic."""
    name = engine.model if engine else ""
    before = dict(TOGETHER_OF_MODEL)
    topics.TOGETHER_OF_MODEL = {name: together}
    right = put = belong = 0
    for groups in TOPICS.values():
        texts = [text for group in groups.values() for text in group]
        label = {text: name for name, group in groups.items() for text in group}
        found = topics_of(texts, engine.encode(texts) if engine else None, name)
        pairs = [pair for rows in found.groups for pair in combinations([texts[row] for row in rows], 2)]
        put += len(pairs)
        right += sum(label[one] == label[other] != "" for one, other in pairs)
        belong += sum(label[one] == label[other] != "" for one, other in combinations(texts, 2))
    topics.TOGETHER_OF_MODEL = before
    return right / max(put, 1), right / belong


def main() -> None:
    total: Any = Counter(kind for kind, _, _ in PAIRS)
    print(f"{len(PAIRS)} pairs: " + ", ".join(f"{total[kind]} {kind}" for kind in KINDS))
    told("no model, by words", *flags(None, SAME))
    engines = [engine for model in MODELS.values() if (engine := engine_of(model)) is not None]
    for engine in engines:
        print(f"\n{engine.model}")
        told(f"cosine {SAME} as it is", *flags(engine, SAME))
        own = SAME_OF_MODEL.get(engine.model)
        if own is not None:
            told(f"cosine {own}, which is {SAME} on its scale", *flags(engine, own))
    print("\ntopics, by pairs")
    print(f"{'by words':>44}  precision {grouped(None, 0)[0]:.2f}  recall {grouped(None, 0)[1]:.2f}")
    for engine in engines:
        for together in sorted({TOGETHER, TOGETHER_OF_MODEL.get(engine.model, TOGETHER), 0.3, 0.2, 0.15}):
            precision, recall = grouped(engine, together)
            chosen = " *" if together == TOGETHER_OF_MODEL.get(engine.model, TOGETHER) else ""
            print(f"{engine.model + f' {together}' + chosen:>44}  precision {precision:.2f}  recall {recall:.2f}")
    absent = [name for name in MODELS if name not in {engine.model for engine in engines}]
    print(f"\nnot here, so not measured: {', '.join(absent) or 'none'}")


if __name__ == "__main__":
    main()
