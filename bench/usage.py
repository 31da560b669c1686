"""Does search get better or worse with use? `.venv-dev/bin/python bench/usage.py [--conversations FILE]`.

What each question finds is asked once of the real tool. Then people are simulated: they search, take what they
wanted if it is there, sometimes by mistake something else, and the ranking learns from it through the very object
a server uses. Each search is judged before it is learned from, by nDCG@10 against the same candidates without any
usage. The interval is a bootstrap over questions (not searches: those of one question are no independent evidence).
Beside it stands the Python predecessor's rule on the same searches: everything shown counts, and nothing is bounded.

Exit code 1 if use makes anything significantly worse, or returning questions gain less than three points."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from math import log2
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.conftest import Caller

from mcp_memory.assembly import open_space
from mcp_memory.search.habits import Credit, Habits, Search
from mcp_memory.search.limbic import Candidate, Company, Constants, Use, cooc, deboost, decay, importance
from mcp_memory.search.usage import Notes, Usage

LIMIT = 10
BETWEEN = 600.0  # seconds from one search to the next: 10,000 are ten weeks
FINDS, MISTAKES = 0.8, 0.15
START = 1_700_000_000.0
ENOUGH = 3.0  # points of nDCG that returning questions must gain
RESAMPLINGS = 500
EMBEDDING_SECONDS = 900.0


class Question(NamedTuple):
    """What somebody asks, the entities that answer it, and what the search found before any use."""

    text: str
    answers: frozenset[str]
    found: list[Candidate]

    def ndcg(self, names: Sequence[str]) -> float:
        gained = sum(1 / log2(place + 1) for place, name in enumerate(names[:LIMIT], 1) if name in self.answers)
        return gained / sum(1 / log2(place + 1) for place in range(1, min(len(self.answers), LIMIT) + 1))


# ── what is known and asked ──────────────────────────────────────────────────────────────────────

Entities = list[dict[str, Any]]
Asked = list[tuple[str, set[str]]]


def conversations(file: Path, each_turn: bool) -> tuple[Entities, Asked]:
    """Conversations with questions, as the evaluation's protocol stores them; or every turn an entity of its own."""
    entities: Entities = []
    asked: Asked = []
    for talk in json.loads(file.read_text(encoding="utf-8")):
        home: dict[str, str] = {}
        for session in talk["sessions"]:
            name = f"{talk['id']} session {session['session']} ({session['date']})"
            said = {turn["id"]: _said(turn) for turn in session["turns"]}
            home |= {turn: f"{talk['id']} {turn}" if each_turn else name for turn in said}
            if each_turn:
                entities += [_entity(home[turn], "Turn", [text]) for turn, text in said.items()]
            else:
                entities.append(_entity(name, "Session", list(said.values())))
        asked += [
            (question["question"], {home[turn] for turn in question["evidence"] if turn in home})
            for question in talk["questions"]
        ]
    return entities, [(text, answers) for text, answers in asked if answers]


def _said(turn: dict[str, str]) -> str:
    return f"{turn['speaker']}: {turn['text']}" + (f" [image: {turn['caption']}]" if turn.get("caption") else "")


def _entity(name: str, kind: str, observations: list[str]) -> dict[str, Any]:
    return {"name": name, "entityType": kind, "observations": observations}


def invented(seed: int = 0, topics: int = 30, notes: int = 12) -> tuple[Entities, Asked]:
    """Notes in topics that share their words, and questions that remember one of them badly."""
    dice = random.Random(seed)
    parts = [a + b for a in "bdfgklmnprstv" for b in "aeiou"]
    lexicon = list(dict.fromkeys("".join(dice.choices(parts, k=3)) for _ in range(3000)))
    entities: Entities = []
    asked: Asked = []
    known: list[tuple[str, list[str], list[list[str]]]] = []
    for topic in range(topics):
        own = dice.sample(lexicon, 40)
        for number in range(notes):
            name = f"note {topic}.{number}"
            sentences = [[*dice.sample(own, 7), *dice.sample(lexicon, 2)] for _ in range(4)]
            entities.append(_entity(name, "Note", [" ".join(words) for words in sentences]))
            known.append((name, own, sentences))
    for _ in range(len(known)):
        # Drawn with replacement: that a note was asked for once must say nothing about the next question.
        name, own, sentences = dice.choice(known)
        asked.append((" ".join([*dice.sample(dice.choice(sentences)[:7], 2), dice.choice(own)]), {name}))
    return entities, asked


def questions(entities: Entities, asked: Asked, model: str) -> list[Question]:
    """Ask the real tool once for each, and keep what it hands to the ranking."""
    with tempfile.TemporaryDirectory() as folder:
        space = open_space(Path(folder) / "memory.db", model=model)
        call = Caller(space)
        for start in range(0, len(entities), 50):
            call("create_entities", entities=entities[start : start + 50])
        vectors = space.vectors
        assert vectors is None or vectors.wait(EMBEDDING_SECONDS), "embedding took too long"
        handed: list[Sequence[Candidate]] = []
        ranking = space.usage.rank

        def rank(query: str, candidates: Sequence[Candidate], limit: int) -> Any:
            handed.append(candidates)
            return ranking(query, candidates, limit)

        space.usage.rank = rank  # type: ignore[method-assign]
        for text, _ in asked:
            call("search_semantic", query=text, limit=LIMIT)
        space.close()
    return [
        Question(text, frozenset(answers), list(found))
        for (text, answers), found in zip(asked, handed, strict=True)
        if found
    ]


# ── who learns ───────────────────────────────────────────────────────────────────────────────────


class Nowhere:
    """A home for usage that keeps nothing: the object that ranks remembers all of it."""

    def load(self) -> Habits:
        return Habits()

    def is_same(self) -> bool:
        return True

    def shown(self) -> dict[str, Use]:
        return {}

    def constants(self) -> dict[str, str]:
        return {}

    def opened(self, counts: Mapping[str, int], at: float) -> None:
        pass

    def write(self, notes: Notes, most_events: int) -> bool:
        return False


class Ours:
    """What a server does, without the server."""

    def __init__(self) -> None:
        self.now = START
        self.usage = Usage(Nowhere(), lambda: self.now, lambda: None)

    def search(self, text: str, found: list[Candidate], origin: str) -> list[str]:
        self.now += BETWEEN
        rows = self.usage.rank(text, found, LIMIT)[:LIMIT]
        self.usage.served(text, rows, limit=LIMIT, origin=origin)
        self.usage.settle()
        return [row.candidate.name for row in rows]

    def use(self, names: list[str], origin: str) -> None:
        self.usage.used(names, origin)

    def prefer(self, name: str, count: int) -> None:
        """As if it had been used so often before, after another search."""
        search = Search("something else entirely", "", self.now, LIMIT, "", None, [], False)
        for number in range(count):
            self.usage.view().take(Credit(name, self.now - number * 3600, search, []))


class Predecessor:
    """Whatever is shown counts as accessed, and all pairs of it as seen together; use says nothing."""

    def __init__(self) -> None:
        self.now = START
        self.constants = Constants()
        self.access: dict[str, Use] = {}
        self.together: dict[tuple[str, str], Company] = {}

    def search(self, text: str, found: list[Candidate], origin: str) -> list[str]:
        self.now += BETWEEN
        nobody = Use()
        most = max((self.access.get(one.name, nobody).count for one in found), default=0)
        days = max((self.access.get(one.name, nobody).days for one in found), default=1)
        scored = [(-self._score(one, found, most, days), one.entity_id, one.name) for one in found]
        names = [name for _, _, name in sorted(scored)][:LIMIT]
        for name in names:
            self._count(name)
        for pair in combinations(sorted(names), 2):
            self.together[pair] = Company(self.together.get(pair, Company()).count + 1, self.now)
        return names

    def _score(self, one: Candidate, found: list[Candidate], most: int, days: int) -> float:
        use, constants = self.access.get(one.name, Use()), self.constants
        company = [
            self.together[pair]
            for other in found
            if other is not one and (pair := tuple(sorted((one.name, other.name)))) in self.together
        ]
        weight = importance(use.count, most, one.degree, use.days or 1, days, constants=constants)
        age = decay(use.last if use.count else one.changed, self.now, constants.temporal_floor, constants)
        boost = 1 + constants.gamma * cooc(company, self.now, constants)
        return one.relevance * deboost(one) * (1 + constants.beta_sal * weight) * age * boost

    def _count(self, name: str) -> None:
        old = self.access.get(name, Use())
        is_new_day = not old.count or old.last // 86400 != self.now // 86400
        self.access[name] = Use(old.count + 1, self.now, old.days + is_new_day)

    def use(self, names: list[str], origin: str) -> None:
        """It took no note of it."""

    def prefer(self, name: str, count: int) -> None:
        self.access[name] = Use(count, self.now, min(count, 30))


# ── who searches ─────────────────────────────────────────────────────────────────────────────────

Stream = Iterator[tuple[int, str, bool]]  # the question, its words, and is it somebody who knows what they want?


def uniform(asked: list[Question], searches: int, dice: random.Random) -> Stream:
    for _ in range(searches):
        number = dice.randrange(len(asked))
        yield number, asked[number].text, True


def zipf(asked: list[Question], searches: int, dice: random.Random) -> Stream:
    """Few questions come back again and again, most are rare."""
    order = dice.sample(range(len(asked)), len(asked))
    for number in dice.choices(order, [1 / rank for rank in range(1, len(order) + 1)], k=searches):
        yield number, asked[number].text, True


def reworded(asked: list[Question], searches: int, dice: random.Random) -> Stream:
    """The same, but three words in ten are forgotten each time."""
    for number, text, knows in zipf(asked, searches, dice):
        kept = [word for word in text.split() if dice.random() > 0.3]
        yield number, " ".join(kept or [text]), knows


def repetition(asked: list[Question], searches: int, dice: random.Random) -> Stream:
    """Nine of ten searches are one question of a machine that opens the first three results, whatever they are."""
    stuck = dice.randrange(len(asked))
    for number, text, knows in uniform(asked, searches, dice):
        yield (number, text, knows) if dice.random() < 0.1 else (stuck, asked[stuck].text, False)


def once(asked: list[Question], searches: int, dice: random.Random) -> Stream:
    """Every question once: nothing comes back."""
    for number in dice.sample(range(len(asked)), len(asked)):
        yield number, asked[number].text, True


STREAMS: dict[str, Callable[[list[Question], int, random.Random], Stream]] = {
    "uniform": uniform,
    "Zipf": zipf,
    "Zipf, other words": reworded,
    "repetition by a machine": repetition,
    "other things were popular": once,
}


def simulate(
    learner: Ours | Predecessor, asked: list[Question], stream: str, searches: int, by_use: bool
) -> dict[int, list[float]]:
    """By question, what each search gained over relevance alone."""
    dice = random.Random(7)
    if stream == "other things were popular":
        names = sorted({one.name for question in asked for one in question.found})
        for rank, name in enumerate(dice.sample(names, min(30, len(names))), 1):
            learner.prefer(name, 1 + 300 // rank)
    gained: dict[int, list[float]] = defaultdict(list)
    plain = [question.ndcg(_by_relevance(question.found)) for question in asked]
    for number, text, knows in STREAMS[stream](asked, searches, dice):
        question, origin = asked[number], "person" if knows else "machine"
        names = learner.search(text, question.found, origin)
        if knows:
            gained[number].append(question.ndcg(names) - plain[number])
        if by_use:
            learner.use(_opened(question, names, dice) if knows else names[:3], origin)
    return gained


def _by_relevance(found: list[Candidate]) -> list[str]:
    return [one.name for one in sorted(found, key=lambda one: (-one.relevance * deboost(one), one.entity_id))]


def _opened(question: Question, names: list[str], dice: random.Random) -> list[str]:
    opened = [name for name in names if name in question.answers and dice.random() < FINDS]
    if names and dice.random() < MISTAKES:
        opened += dice.choices(names, [1 / place for place in range(1, len(names) + 1)])
    return opened


# ── the figures ──────────────────────────────────────────────────────────────────────────────────


class Figure(NamedTuple):
    """Points of nDCG@10 gained, and where that lies 95 times of 100."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:+6.2f} [{self.low:+6.2f} {self.high:+6.2f}]"


def figure(gained: dict[int, list[float]]) -> Figure:
    dice = random.Random(0)
    sums = [(sum(some), len(some)) for some in gained.values()]

    def mean(some: list[tuple[float, int]]) -> float:
        return 100 * sum(total for total, _ in some) / sum(count for _, count in some)

    drawn = sorted(mean(dice.choices(sums, k=len(sums))) for _ in range(RESAMPLINGS))
    return Figure(mean(sums), drawn[int(RESAMPLINGS * 0.025)], drawn[int(RESAMPLINGS * 0.975) - 1])


def run(title: str, asked: list[Question], searches: int) -> list[str]:
    """Print the table of one corpus; what should not be so is returned."""
    plain = 100 * fmean(question.ndcg(_by_relevance(question.found)) for question in asked)
    print(f"\n{title}: {len(asked)} questions, nDCG@{LIMIT} without usage {plain:.1f}")
    print(f"  {'searches':<26} {'feedback':<9} {'this server':<25} {'predecessor (exposure)':<25}")
    wrong = []
    for stream in STREAMS:
        theirs = figure(simulate(Predecessor(), asked, stream, searches, False))
        for feedback in ("exposure", "use"):
            ours = figure(simulate(Ours(), asked, stream, searches, feedback == "use"))
            print(f"  {stream:<26} {feedback:<9} {ours!s:<25} {theirs!s:<25}", flush=True)
            if ours.high < 0:
                wrong.append(f"{title}, {stream}, {feedback}: significantly worse with use")
            if (stream, feedback) == ("Zipf", "use") and ours.mean < ENOUGH:
                wrong.append(f"{title}: returning questions gain {ours.mean:.2f}, less than {ENOUGH:g} points")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--conversations", type=Path, help="the evaluation's conversations; else texts are invented")
    parser.add_argument("--searches", type=int, default=10_000)
    parser.add_argument("--model", default="auto", help="as the setting; with none only words are compared")
    options = parser.parse_args()
    began = time.perf_counter()
    corpora = {"Invented notes": invented()}
    if options.conversations:
        corpora["Sessions as entities"] = conversations(options.conversations, False)
        corpora["Turns as entities"] = conversations(options.conversations, True)
    print(f"{options.searches:,} searches each; points of nDCG@{LIMIT} against no usage, 95 % intervals over questions")
    wrong: list[str] = []
    for title, (entities, asked) in corpora.items():
        wrong += run(title, questions(entities, asked, options.model), options.searches)
    print(f"\n{time.perf_counter() - began:.0f} s. " + ("; ".join(wrong) or "Nothing is worse with use."))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
