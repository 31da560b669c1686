"""Does a question find what answers it? `.venv-dev/bin/python bench/retrieval.py [--conversations FILE]`.

Through the real server over stdio, one memory for each conversation: an entity for each session, named with its
date, an observation for each turn. The matches of `search_semantic` by score are the ranking. recall@k is the share
of the turns with evidence among the first k, averaged over questions. FILE is LoCoMo in the form of its evaluation
(sessions with turns, questions with evidence); it is nobody's to pass on and not part of this repository.

Beside it, and without it, stand notes of ours in English and Spanish (`bench/bilingual.py`): the same facts and
questions in both, so that each language is compared with the other, and across.

Every baseline is computed in the same run on the same texts. The interval is a paired bootstrap over questions of
the difference to the best baseline. Latency is of questions asked for the first time."""

from __future__ import annotations

import argparse
import json
import random
import re
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from math import log2
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from bilingual import LANGUAGES, notes
from stdio import HELLO, Contender, Server, request

from mcp_memory.embedding import engine
from mcp_memory.search.folding import words
from mcp_memory.search.stopwords import STOP_WORDS

LIMIT = 20
CUTS = (1, 5, 10, 20)
RESAMPLINGS = 2000
PATIENCE = 600.0  # seconds until every text has its vector
RRF_K = 60


class Text(NamedTuple):
    """Something said: its id, the entity it belongs to, and the words."""

    id: str
    owner: str
    words: str


class Asked(NamedTuple):
    text: str
    category: str
    evidence: frozenset[str]


class Corpus(NamedTuple):
    name: str
    texts: list[Text]
    questions: list[Asked]


Ranking = list[str]  # ids of texts, the best first
Method = Callable[[Corpus], list[Ranking]]


def conversations(file: Path) -> list[Corpus]:
    corpora = []
    for talk in json.loads(file.read_text(encoding="utf-8")):
        texts = [
            Text(turn["id"], f"{session['session']} ({session['date']})", _said(turn))
            for session in talk["sessions"]
            for turn in session["turns"]
        ]
        known = {text.id for text in texts}
        questions = [
            Asked(question["question"], question["category"], evidence)
            for question in talk["questions"]
            if (evidence := frozenset(question["evidence"]) & known)
        ]
        corpora.append(Corpus(talk["id"], texts, questions))
    return corpora


def _said(turn: dict[str, str]) -> str:
    return f"{turn['speaker']}: {turn['text']}" + (f" [image: {turn['caption']}]" if turn.get("caption") else "")


def in_languages(texts: str, questions: str) -> Corpus:
    """Our notes in one language, asked about in another or the same."""
    found = notes(texts)
    asked = [
        Asked(question, "long" if is_long else "short", frozenset({f"n{number}"}))
        for number, (_, _, question, is_long) in enumerate(notes(questions))
    ]
    written = [Text(f"n{number}", topic, text) for number, (topic, text, _, _) in enumerate(found)]
    return Corpus(f"{questions} on {texts}", written, asked)


# ── this server ──────────────────────────────────────────────────────────────────────────────────


class Ours:
    """The server over pipes; what each question took is kept."""

    def __init__(self, model: str = "auto") -> None:
        self.model = model
        self.seconds: list[float] = []

    def __call__(self, corpus: Corpus) -> list[Ranking]:
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "memory.db")
            command = [sys.executable, "-m", "mcp_memory", "--model", self.model, "--max-observations", "1000"]
            with Contender("ours", command, file, {"MCP_MEMORY_MODEL": self.model}).running() as server:
                server.ask(request("initialize", HELLO))
                return self._asked(server, corpus)

    def _asked(self, server: Server, corpus: Corpus) -> list[Ranking]:
        owners: dict[str, list[Text]] = {}
        for text in corpus.texts:
            owners.setdefault(text.owner, []).append(text)
        for owner, texts in owners.items():
            said = [text.words for text in texts]
            _call(server, "create_entities", entities=[{"name": owner, "entityType": "Session", "observations": said}])
        ids: dict[int, str] = {}
        for owner, texts in owners.items():
            (entity,) = _call(server, "open_nodes", names=[owner], detail=True)["entities"]
            seen = {observation["content"]: observation["id"] for observation in entity["observations"]}
            ids |= {seen[text.words]: text.id for text in texts}
        self._settle(server)
        return [self._ranked(server, question.text, ids) for question in corpus.questions]

    def _settle(self, server: Server) -> None:
        until = time.monotonic() + PATIENCE
        while _call(server, "search_semantic", query="is everything there")["status"] == "incomplete index":
            if time.monotonic() > until:
                raise SystemExit(f"embedding took longer than {PATIENCE:.0f} s")
            time.sleep(0.2)

    def _ranked(self, server: Server, question: str, ids: dict[int, str]) -> Ranking:
        line = request("tools/call", {"name": "search_semantic", "arguments": {"query": question, "limit": LIMIT}})
        started = time.perf_counter()
        answer = server.ask(line)
        self.seconds.append(time.perf_counter() - started)
        results = json.loads(answer)["result"]["structuredContent"]["results"]
        matches = sorted((match for row in results for match in row["matches"]), key=lambda match: -match["score"])
        return [ids[match["id"]] for match in matches if match["id"] in ids]


def _call(server: Server, tool: str, **arguments: Any) -> Any:
    answer = json.loads(server.ask(request("tools/call", {"name": tool, "arguments": arguments})))["result"]
    assert not answer.get("isError"), answer
    return answer["structuredContent"]


# ── what others do ───────────────────────────────────────────────────────────────────────────────


def substring(corpus: Corpus) -> list[Ranking]:
    """The whole query in name or text, as the official server searches."""
    return [
        [text.id for text in corpus.texts if question.text.lower() in f"{text.owner}\n{text.words}".lower()]
        for question in corpus.questions
    ]


def prefixes(corpus: Corpus) -> list[Ranking]:
    """By how many words of the query begin a word of the text."""
    said = [(text.id, words(text.words)) for text in corpus.texts]
    rankings = []
    for question in corpus.questions:
        asked = dict.fromkeys(words(question.text))
        counts = {ident: sum(any(word.startswith(one) for word in found) for one in asked) for ident, found in said}
        rankings.append(sorted((ident for ident in counts if counts[ident]), key=lambda ident: -counts[ident]))
    return rankings


def full_text(corpus: Corpus, joiner: str = " OR ", tokenizer: str = "unicode61", stops: bool = False) -> list[Ranking]:
    """FTS5 with BM25."""
    database = sqlite3.connect(":memory:")
    database.execute(f"create virtual table said using fts5(id unindexed, owner, words, tokenize='{tokenizer}')")
    database.executemany("insert into said values (?, ?, ?)", corpus.texts)
    rankings = []
    for question in corpus.questions:
        asked = [word for word in words(question.text) if not (stops and word in STOP_WORDS)] or words(question.text)
        query = joiner.join(f'"{word}"' for word in asked)
        rows = database.execute("select id from said where said match ? order by rank limit 100", (query,))
        rankings.append([ident for (ident,) in rows])
    database.close()
    return rankings


def dense(corpus: Corpus) -> list[Ranking]:
    """The vectors of the same model alone."""
    model = engine()
    assert model is not None
    known = model.encode([text.words for text in corpus.texts])
    scores = np.concatenate([model.encode([question.text], "query") for question in corpus.questions]) @ known.T
    return [[corpus.texts[place].id for place in np.argsort(-row)[:100]] for row in scores]


def fused_by_rank(corpus: Corpus) -> list[Ranking]:
    """Reciprocal rank fusion of the two, as the predecessor documents it."""
    rankings = []
    for lists in zip(full_text(corpus, tokenizer="porter unicode61", stops=True), dense(corpus), strict=True):
        scores: dict[str, float] = {}
        for ranking in lists:
            for place, ident in enumerate(ranking, 1):
                scores[ident] = scores.get(ident, 0.0) + 1 / (RRF_K + place)
        rankings.append(sorted(scores, key=lambda ident: -scores[ident]))
    return rankings


BASELINES: dict[str, Method] = {
    "whole query as a substring": substring,
    "prefix hit count": prefixes,
    "FTS5, all words": lambda corpus: full_text(corpus, " AND "),
    "FTS5, any word": full_text,
    "  without stop words": lambda corpus: full_text(corpus, stops=True),
    "  and with stems (porter)": lambda corpus: full_text(corpus, tokenizer="porter unicode61", stops=True),
    "vectors only": dense,
    "both, RRF k=60": fused_by_rank,
}


# ── figures ──────────────────────────────────────────────────────────────────────────────────────


class Figures(NamedTuple):
    """Of one question."""

    recall: tuple[float, ...]
    mrr: float
    ndcg: float


def figures(ranking: Ranking, evidence: frozenset[str]) -> Figures:
    places = [place for place, ident in enumerate(ranking, 1) if ident in evidence]
    ideal = sum(1 / log2(place + 1) for place in range(1, min(len(evidence), 10) + 1))
    return Figures(
        tuple(100 * sum(place <= cut for place in places) / len(evidence) for cut in CUTS),
        100 / places[0] if places else 0.0,
        100 * sum(1 / log2(place + 1) for place in places if place <= 10) / ideal,
    )


def row(title: str, found: Sequence[Figures]) -> str:
    columns = [*(fmean(one.recall[cut] for one in found) for cut in range(len(CUTS)))]
    columns += [fmean(one.mrr for one in found), fmean(one.ndcg for one in found)]
    return f"  {title:<34}" + "".join(f"{value:8.1f}" for value in columns)


def interval(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """How much more, and where that lies 95 times of 100."""
    dice = random.Random(0)
    gained = [one - other for one, other in zip(ours, theirs, strict=True)]
    drawn = sorted(fmean(dice.choices(gained, k=len(gained))) for _ in range(RESAMPLINGS))
    low, high = drawn[int(RESAMPLINGS * 0.025)], drawn[int(RESAMPLINGS * 0.975) - 1]
    return f"{fmean(gained):+.1f} [{low:+.1f} {high:+.1f}]"


def measure(title: str, corpora: Sequence[Corpus], baselines: dict[str, Method]) -> dict[str, list[Figures]]:
    """Print the table of some corpora."""
    questions = [question for corpus in corpora for question in corpus.questions]
    print(f"\n{title}: {len(questions)} questions, {sum(len(corpus.texts) for corpus in corpora)} texts")
    print(f"  {'':<34}" + "".join(f"{name:>8}" for name in (*(f"R@{cut}" for cut in CUTS), "MRR", "nDCG")))
    ours, words_only = Ours(), Ours("none")
    methods: dict[str, Method] = {**baselines, "this server, words only": words_only, "this server": ours}
    found: dict[str, list[Figures]] = {}
    for name, method in methods.items():
        rankings = [ranking for corpus in corpora for ranking in method(corpus)]
        found[name] = [figures(one, question.evidence) for one, question in zip(rankings, questions, strict=True)]
        print(row(name, found[name]), flush=True)
    for category in sorted({question.category for question in questions}):
        some = [one for one, asked in zip(found["this server"], questions, strict=True) if asked.category == category]
        print(row(f"  {category} ({len(some)})", some))
    for place, cut in enumerate(CUTS[1:3], 1):
        best = max(baselines, key=lambda name: fmean(one.recall[place] for one in found[name]))
        gained = interval(*([one.recall[place] for one in found[name]] for name in ("this server", best)))
        print(f"  recall@{cut} against {re.sub(' +', ' ', best).strip()}: {gained}")
    for name, one in (("with a model", ours), ("words only", words_only)):
        times = sorted(seconds * 1000 for seconds in one.seconds)
        print(f"  a new question, {name}: p50 {median(times):.1f} ms, p95 {quantiles(times, n=20)[-1]:.1f} ms")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=Path, help="LoCoMo as JSON: sessions, turns, questions, evidence")
    parser.add_argument("--quick", action="store_true", help="without the baselines")
    given = parser.parse_args()
    baselines = {"FTS5, any word": BASELINES["FTS5, any word"]} if given.quick else BASELINES
    if given.conversations is not None:
        measure("Conversations", conversations(given.conversations), baselines)
    for texts in LANGUAGES:
        for questions in LANGUAGES:
            measure(f"{questions} questions on {texts} notes", [in_languages(texts, questions)], baselines)


if __name__ == "__main__":
    main()
