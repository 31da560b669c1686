"""Google's multilingual Universal Sentence Encoder, version 3, in numpy: a text becomes 512 numbers.

The model puts questions beside questions. Of what is asked, what all questions have in common is therefore
taken away, as far as a text has it (`asked`): a question then lies where its answers lie.

The network: an embedding for each piece; three branches that look at 2, 3 and 5 neighbouring pieces; a sum
over the text; four small layers. It has no longest text and no attention, so a text costs what its pieces
cost. Many texts are computed as one: their pieces stand in one matrix, and each weight is read once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from mcp_memory.embedding.numerics import Floats, numpy
from mcp_memory.embedding.pieces import Pieces

DIMENSION = 512
WIDTH = 256  # of each branch
# Pieces to a branch's window, and how many of them stand before the piece in the middle.
BRANCHES = ((2, 0), (3, 1), (5, 2))
BEFORE, AFTER = 2, 2
# The vocabulary is dealt out to so many tables in turn, each with its own scale.
TABLES = 17
# What statements have in common, and what questions have: two rows of half-precision numbers, made from pairs in six
# languages by `python -m tests.embedding.questions`. From dialogues or notes that are searched nothing was learnt.
COMMON = "questions.f16"
# Pieces computed at a time: more gains nothing, and this much stays in the processor's cache.
AT_ONCE = 512


class UniversalEncoder:
    """The network with its weights. It holds no state between calls."""

    dimension = DIMENSION

    def __init__(self, folder: Path) -> None:
        np = numpy()
        self._np = np
        self._pieces = Pieces.read(folder / "sp.model")
        with np.load(folder / "weights.npz", allow_pickle=False) as saved:
            first = saved["q1"]
            self._table = np.empty((TABLES * len(first), DIMENSION), dtype=np.uint8)
            self._table[::TABLES] = first
            for number in range(1, TABLES):
                self._table[number::TABLES] = saved[f"q{number + 1}"]
            self._w: dict[str, Any] = {name: saved[name] for name in saved.files if not name.startswith("q")}
        w = self._w
        # One product for the three branches instead of three.
        for whole, part in (("proj", "proj"), ("proj_b", "proj_b"), ("ln_g_all", "ln_g"), ("ln_b_all", "ln_b")):
            w[whole] = np.concatenate([w[f"{part}{size}"] for size, _ in BRANCHES], axis=-1)
        self._smallest = float(w["eps"])
        common = np.fromfile(Path(__file__).with_name(COMMON), "<f2").astype(np.float32).reshape(2, DIMENSION)
        self._statement, self._apart = common[0], common[1] - common[0]

    def cut(self, text: str) -> list[int]:
        return self._pieces.ids(text)

    def count(self, text: str) -> int:
        return self._pieces.count(text)

    def run(self, texts: Sequence[list[int]]) -> Floats:
        """Vectors of length 1, in the order of the texts."""
        out: Floats = self._np.empty((len(texts), DIMENSION), dtype=self._np.float32)
        first = size = 0
        for place, pieces in enumerate(texts):
            if size and size + len(pieces) > AT_ONCE:
                out[first:place] = self._together(texts[first:place])
                first, size = place, 0
            size += len(pieces)
        if size:
            out[first:] = self._together(texts[first:])
        return out

    def asked(self, vectors: Floats) -> Floats:
        """The same as something that is asked for. What is no question (key words, a statement) hardly moves."""
        np = self._np
        share = (vectors - self._statement) @ self._apart / (self._apart @ self._apart)
        moved: Floats = vectors - np.clip(share, 0, 1)[:, None] * self._apart
        moved /= np.linalg.norm(moved, axis=1, keepdims=True)
        return moved

    def _together(self, texts: Sequence[list[int]]) -> Floats:
        np, w = self._np, self._w
        lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        total = int(lengths.sum())
        starts = np.cumsum(lengths) - lengths
        features = self._features(np.fromiter(chain.from_iterable(texts), np.int64, total), starts, lengths)
        # The sum commutes with the product, so the product is one row a text, not one a piece.
        size = lengths.astype(np.float32)[:, None]
        mean = (np.add.reduceat(features, starts, axis=0) @ w["cnn_W"] + size * w["cnn_b"]) / np.sqrt(size)
        second = np.maximum(mean @ w["p1"] + np.maximum(mean @ w["d0"], 0) @ w["d1"], 0)
        vectors: Floats = np.tanh(second @ w["p3"] + np.maximum(second @ w["d2"], 0) @ w["d3"])
        lengths_squared = np.einsum("ij,ij->i", vectors, vectors)[:, None]
        vectors /= np.sqrt(np.maximum(lengths_squared, self._smallest))
        return vectors

    def _features(self, pieces: Any, starts: Any, lengths: Any) -> Floats:
        """A row a piece: its embedding, and what each branch makes of its neighbourhood."""
        np, w = self._np, self._w
        total = len(pieces)
        features = np.empty((total, DIMENSION + len(BRANCHES) * WIDTH), dtype=np.float32)
        table = pieces % TABLES
        own = features[:, :DIMENSION]
        np.multiply(self._table[pieces], w["scale"][table, None], out=own)
        own += w["lo"][table, None]
        projected = self._levelled(own @ w["proj"] + w["proj_b"], w["ln_g_all"], w["ln_b_all"])
        window = self._window(starts, lengths, total)
        # Row `total` is what stands beyond the ends of a text: nothing.
        rows = np.zeros((total + 1, WIDTH), dtype=np.float32)
        for number, (size, before) in enumerate(BRANCHES):
            seen = window[:, BEFORE - before : BEFORE - before + size]
            given = projected[:, number * WIDTH : (number + 1) * WIDTH]
            for layer in ("1", "2"):
                rows[:total] = given
                looked = rows[seen].reshape(total, size * WIDTH) @ w[f"w{layer}_{size}"]
                looked += w[f"b{layer}_{size}"]
                given = np.maximum(looked, 0, out=looked) + given
            at = DIMENSION + number * WIDTH
            features[:, at : at + WIDTH] = given
        levelled: Floats = self._levelled(features, w["ln_g"], w["ln_b"])
        return levelled

    def _levelled(self, rows: Any, gain: Any, shift: Any) -> Any:
        """Each row with mean 0 and variance 1, then scaled and moved as learnt."""
        np = self._np
        rows -= rows.mean(axis=1, keepdims=True)
        variance = np.einsum("ij,ij->i", rows, rows) / rows.shape[1]
        rows /= np.sqrt(variance + self._smallest)[:, None]
        rows *= gain
        rows += shift
        return rows

    def _window(self, starts: Any, lengths: Any, total: int) -> Any:
        """For each piece the rows of its neighbours; beyond the ends of its text the row of nothing."""
        np = self._np
        places = np.arange(total)[:, None] + np.arange(-BEFORE, AFTER + 1)
        first = np.repeat(starts, lengths)[:, None]
        last = np.repeat(starts + lengths, lengths)[:, None]
        return np.where((places >= first) & (places < last), places, total)
