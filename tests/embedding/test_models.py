"""Models are fetched whole and right or not at all, and every one of them runs behind the same engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import msgspec
import numpy as np
import pytest

from mcp_memory.assembly import open_space
from mcp_memory.embedding import universal
from mcp_memory.embedding.command import model as command
from mcp_memory.embedding.engine import AUTO, Engine, engine, why_not
from mcp_memory.embedding.models import DOWNLOADABLE, EMBEDDED, MODELS, cache_folder
from mcp_memory.server import main
from tests.conftest import Caller, Refused, person
from tests.embedding import questions
from tests.embedding.hub import DIMENSION, FILES, TINY, Hub, put_tiny, serving

# The package gives this module's name to the function in it.
engines = import_module("mcp_memory.embedding.engine")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person of whom nothing is known, and who knows one more model."""
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    monkeypatch.setitem(MODELS, "tiny", TINY)
    monkeypatch.setattr(engines, "_engines", {})
    return tmp_path


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serving() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        yield hub


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> tuple[int, str, str]:
        code = main(["model", *words])
        return code, *capfd.readouterr()

    return run


# ── fetching ─────────────────────────────────────────────────────────────────────────────────────


def test_a_model_is_fetched_checked_and_used(hub: Hub, run: Run) -> None:
    assert run("which", "tiny")[0] == 1
    code, said, _ = run("download", "tiny")
    assert code == 0 and "tiny is in" in said
    folder = cache_folder(TINY)
    assert {file.name for file in folder.iterdir()} == {file.name for file in TINY.files}
    assert run("verify", "tiny")[0] == 0
    assert run("which", "tiny")[:2] == (0, f"tiny, from {folder}\n")

    made = engine("tiny")
    assert made is not None
    tea, coffee, dog = made.encode(["tea", "coffee", "dog"])
    assert tea @ coffee > tea @ dog


def test_what_is_there_and_right_is_not_fetched_again(hub: Hub, run: Run) -> None:
    run("download", "tiny")
    before = len(hub.asked)
    (cache_folder(TINY) / "tokenizer.json").unlink()
    assert run("download", "tiny")[0] == 0

    assert {name for method, name, _ in hub.asked[before:] if method == "GET"} == {"tokenizer.json"}


def test_an_interrupted_download_goes_on_where_it_was(hub: Hub, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 64)
    hub.breaks_once.add("onnx/model.onnx")
    for _ in range(2):  # a library that does not go on by itself goes on at the next command
        if run("download", "tiny")[0] == 0:
            break

    assert run("verify", "tiny")[0] == 0
    spans = [span for method, name, span in hub.asked if method == "GET" and name == "onnx/model.onnx"]
    assert len(spans) == 2 and spans[1] not in (None, "bytes=0-")


def test_a_file_that_is_not_the_one_we_know_is_refused(hub: Hub, run: Run) -> None:
    hub.files["onnx/model.onnx"] = FILES["onnx/model.onnx"] + b"\0"
    code, _, complaint = run("download", "tiny")

    assert code == 1 and "is not the file it should be" in complaint
    assert not (cache_folder(TINY) / "model.onnx").exists()
    hub.files = dict(FILES)
    assert run("download", "tiny")[0] == 0


def test_a_damaged_file_is_noticed_and_replaced(hub: Hub, run: Run) -> None:
    run("download", "tiny")
    damaged = cache_folder(TINY) / "model.onnx"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"\1")
    code, said, _ = run("verify", "tiny")
    assert code == 1 and "WRONG: tiny model.onnx" in said and "right: tiny tokenizer.json" in said

    assert run("download", "tiny")[0] == 0
    assert run("verify", "tiny")[0] == 0


def test_without_a_connection_it_says_what_to_do(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as hub:
        address = hub.address
    monkeypatch.setenv("HF_ENDPOINT", address)  # nobody is there any more
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
    code, _, complaint = run("download", "tiny")

    assert code == 1
    assert f"could not be fetched from {address}" in complaint and "HF_ENDPOINT" in complaint
    assert "Traceback" not in complaint


def test_the_embedded_model_is_not_downloaded(run: Run) -> None:
    code, _, complaint = run("download", EMBEDDED.name)
    assert code == 1 and "comes with a package" in complaint


@pytest.mark.parametrize(
    ("words", "complaint"),
    [(["fetch"], "model cannot do 'fetch'"), (["download", "gpt"], "There is no model 'gpt'")],
)
def test_a_wrong_word_is_answered_with_the_right_ones(run: Run, words: list[str], complaint: str) -> None:
    code, _, complained = run(*words)
    assert code == 2 and complaint in complained


def test_the_list_tells_of_every_model_where_it_is_and_what_it_costs(run: Run) -> None:
    _, said, _ = run("list")

    assert all(f"{model.name}\n" in said or f"{model.name}  (in use)\n" in said for model in MODELS.values())
    assert f"{EMBEDDED.name}  (in use)" in said
    assert "mcp-memory model download paraphrase-multilingual-MiniLM-L12-v2" in said
    assert command.__doc__


# ── choosing ─────────────────────────────────────────────────────────────────────────────────────


def test_the_embedded_model_is_here_whole_and_right(run: Run) -> None:
    assert run("verify", EMBEDDED.name)[0] == 0


def test_by_itself_the_downloaded_documented_model_is_used_else_the_embedded_one(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    found = engine(AUTO)
    assert found is not None and found.model == EMBEDDED.name

    monkeypatch.setattr(engines, "DOWNLOADABLE", TINY)
    put_tiny(cache_folder(TINY))
    found = engine(AUTO)
    assert found is not None and found.model == "tiny"


def test_the_documented_folder_is_the_documented_models_own(home: Path) -> None:
    assert cache_folder(DOWNLOADABLE) == home / ".cache" / "mcp-memory-v2" / "models"
    assert [file.name for file in DOWNLOADABLE.files] == [
        "model.onnx",
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
    ]


def test_a_folder_with_a_model_of_ones_own_will_do(home: Path) -> None:
    own = put_tiny(home / "own")
    made = engine(str(own))

    assert made is not None and made.dimension == DIMENSION
    assert made.stamp.startswith("own-")


def test_each_reason_for_having_no_model_says_what_to_do(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert why_not() is None
    assert "switched off" in (why_not("none") or "")
    assert "mcp-memory model list" in (why_not("gpt") or "")
    assert f"model download {DOWNLOADABLE.name}" in (why_not(DOWNLOADABLE.name) or "")
    assert str(home / "nowhere") in (why_not(str(home / "nowhere")) or "")
    put_tiny(cache_folder(TINY))
    monkeypatch.setattr(engines, "ONNX_NEEDS", ("no_such_package",))
    assert "pip install 'mcp-memory[models]'" in (why_not("tiny") or "")


# ── running ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("choice", ["tiny", EMBEDDED.name])
def test_equal_texts_get_equal_vectors_alone_or_among_others(choice: str) -> None:
    put_tiny(cache_folder(TINY))
    made = engine(choice)
    assert made is not None
    texts = ["tea", "the dog likes the cat and a river", "", "money " * 300, "tea"]
    together = made.encode(texts)

    assert together.shape == (5, made.dimension) and together.dtype == np.float32
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for text, row in zip(texts, together, strict=True):
        assert np.allclose(made.encode([text])[0], row, atol=1e-5)
    assert np.array_equal(made.encode(["tea"], "query"), made.encode(["tea"], "query"))


def test_a_models_prefixes_stand_before_what_it_is_given() -> None:
    put_tiny(cache_folder(TINY))
    plain = engine("tiny")
    assert plain is not None
    model = msgspec.structs.replace(TINY, query_prefix="the ", passage_prefix="a ")
    prefixed = Engine(model, cache_folder(TINY))

    assert np.array_equal(prefixed.encode(["tea"], "query"), plain.encode(["the tea"]))
    assert np.array_equal(prefixed.encode(["tea", "dog"]), plain.encode(["a tea", "a dog"]))


def test_a_strict_search_fails_without_a_model_and_an_easy_one_goes_by_words(tmp_path: Path) -> None:
    strict = open_space(tmp_path / "strict.db", model="tiny", requires_model=True)
    easy = open_space(tmp_path / "easy.db", model="none")
    for space in (strict, easy):
        Caller(space)("create_entities", entities=[person("Ada", "drinks tea")])

    with pytest.raises(Refused, match="Embedding model not available"):
        Caller(strict)("search_semantic", query="tea")
    assert Caller(strict)("search_nodes", query="tea")["entities"]
    assert [row["name"] for row in Caller(easy)("search_semantic", query="tea")["results"]] == ["Ada"]
    strict.close()
    easy.close()


# ── questions ────────────────────────────────────────────────────────────────────────────────────


def test_what_questions_have_in_common_is_what_the_package_holds() -> None:
    held = np.fromfile(Path(universal.__file__).with_name(universal.COMMON), "<f2").reshape(2, -1)

    assert np.allclose(held.astype(np.float32), questions.common().astype(np.float32), atol=2e-3)


def test_a_question_lies_nearer_to_its_answer_and_farther_from_other_questions() -> None:
    made = engine(EMBEDDED.name)
    assert made is not None
    answer, other = made.encode(["Rosa: my cat broke the blue vase yesterday", "What did Rosa think of your new vase?"])
    for text in ("What did Rosa's cat break?", "¿Qué rompió el gato de Rosa?", "Was hat Rosas Katze zerbrochen?"):
        asked, as_it_is = made.encode([text], "query")[0], made.encode([text])[0]
        assert asked @ answer > asked @ other
        assert asked @ (answer - other) > as_it_is @ (answer - other) + 0.1


def test_what_is_no_question_is_searched_for_as_it_is() -> None:
    made = engine(EMBEDDED.name)
    assert made is not None
    texts = ["cat blue vase", "The backup runs at three", "el gato rompió el jarrón azul"]
    for text in texts:
        assert made.encode([text], "query")[0] @ made.encode([text])[0] > 0.97


def test_many_questions_and_one_get_the_same_vectors() -> None:
    for choice in ("tiny", EMBEDDED.name):
        put_tiny(cache_folder(TINY))
        made = engine(choice)
        assert made is not None
        asked = ["where is the dog", "the cat has tea"]
        alone = np.concatenate([made.encode([text], "query") for text in asked])
        assert np.allclose(made.encode(asked, "query"), alone, atol=1e-5)
        assert np.allclose(np.linalg.norm(alone, axis=1), 1, atol=1e-5)
