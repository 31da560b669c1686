"""The engine: texts in, vectors out. One a process and model, loaded when the first vector is needed.

Laws: nothing is loaded on import or by asking whether there is an engine; encoding holds no lock of anyone
else's; equal texts give equal vectors, alone or among others."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from mcp_memory.embedding.models import EMBEDDED, Model
from mcp_memory.embedding.numerics import Floats, numpy

Purpose = Literal["query", "passage"]
# Queries whose vectors are kept: a client that refines its search repeats them.
QUERIES = 64
# Bumped when the same facts are written as another text: old vectors are then as stale as another model's.
TEXT_VERSION = 1
MISSING = (
    "Embedding model not available. Run 'mcp-memory model download' to download one, "
    "or reinstall mcp-memory to bring back the one it comes with."
)


class Encoder(Protocol):
    """What runs a model: cuts texts into its pieces, and makes vectors of length 1 of them."""

    def cut(self, text: str) -> list[int]: ...
    def count(self, text: str) -> int: ...
    def run(self, texts: Sequence[list[int]]) -> Floats: ...


class Engine:
    """A model ready to use. Any number of threads may call it; they take turns."""

    def __init__(self, model: Model, folder: Path) -> None:
        self._model = model
        self._folder = folder
        self._encoder: Encoder | None = None
        self._turn = threading.Lock()
        self._queries: OrderedDict[str, Floats] = OrderedDict()

    @property
    def model(self) -> str:
        return self._model.name

    @property
    def dimension(self) -> int:
        return self._model.dimension

    @property
    def stamp(self) -> str:
        """What a vector is marked with: two vectors may be compared if their stamps are equal."""
        return f"{self._model.name}/{TEXT_VERSION}"

    @property
    def loaded(self) -> bool:
        return self._encoder is not None

    def encode(self, texts: Sequence[str], purpose: Purpose = "passage") -> Floats:
        """A row of length 1 for each text, float32. A query alone is remembered."""
        if purpose == "query" and len(texts) == 1:
            return self._query(texts[0])
        prefix = self._model.query_prefix if purpose == "query" else self._model.passage_prefix
        return self._encode([prefix + text for text in texts])

    def tokens(self, text: str) -> int:
        """How many pieces the model reads in this text."""
        with self._turn:
            return self._ready().count(text)

    def _query(self, text: str) -> Floats:
        with self._turn:
            known = self._queries.get(text)
            if known is not None:
                self._queries.move_to_end(text)
                return known
        vector = self._encode([self._model.query_prefix + text])
        vector.flags.writeable = False
        with self._turn:
            self._queries[text] = vector
            if len(self._queries) > QUERIES:
                self._queries.popitem(last=False)
        return vector

    def _encode(self, texts: Sequence[str]) -> Floats:
        """Short texts with short ones: a batch costs what its longest text costs, for each of its texts."""
        np = numpy()
        with self._turn:
            encoder = self._ready()
            cut = [encoder.cut(text) for text in texts]
        order = sorted(range(len(cut)), key=lambda place: len(cut[place]))
        vectors: Floats = np.empty((len(cut), self.dimension), dtype=np.float32)
        at = 0
        while at < len(order):
            batch = order[at : at + BATCH]
            with self._turn:
                vectors[batch] = self._ready().run([cut[place] for place in batch])
            at += BATCH
        return vectors

    def _ready(self) -> Encoder:
        if self._encoder is None:
            self._encoder = _encoder(self._model, self._folder)
        return self._encoder


# Texts between two looks at whether someone else waits for a turn: a query among bulk work waits for one batch.
BATCH = 16


def _encoder(model: Model, folder: Path) -> Encoder:
    from mcp_memory.embedding.universal import UniversalEncoder

    return UniversalEncoder(folder)


_engines: dict[str, Engine | None] = {}
_making = threading.Lock()


def engine(choice: str = "auto") -> Engine | None:
    """The engine of this process for a setting `model`; None if its model is not here (`why_not` says why)."""
    with _making:
        if choice not in _engines:
            folder = EMBEDDED.folder()
            _engines[choice] = Engine(EMBEDDED, folder) if folder else None
        return _engines[choice]


def why_not(choice: str = "auto") -> str | None:
    """Why there is no engine, in words for whoever called; None if there is one."""
    return None if engine(choice) else MISSING
