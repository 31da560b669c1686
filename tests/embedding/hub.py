"""A hub on this computer, and the smallest model that is one: a real ONNX graph and a real tokenizer."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from mcp_memory.embedding.models import File, Model

WORDS = "[PAD] [UNK] [CLS] [SEP] tea coffee drink dog cat animal bank money river likes the a has".split()
DIMENSION = 16
FLOAT, INT64 = 1, 7
REVISION = "0123456789abcdef0123456789abcdef01234567"


def tokenizer() -> bytes:
    vocabulary = {word: place for place, word in enumerate(WORDS)}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return made.to_str().encode()


def graph() -> bytes:
    """A row of numbers for each piece: the first layer of any such model, and no other."""
    rows = np.random.default_rng(7).normal(size=(len(WORDS), DIMENSION)).astype("<f4")
    for likes, like in (("coffee", "tea"), ("cat", "dog")):
        rows[WORDS.index(likes)] = rows[WORDS.index(like)] + 0.3 * rows[WORDS.index(likes)]
    weights = (
        _number(1, len(WORDS))
        + _number(1, DIMENSION)
        + _number(2, FLOAT)
        + _text(8, "rows")
        + _piece(9, rows.tobytes())
    )
    gather = _text(1, "rows") + _text(1, "input_ids") + _text(2, "last_hidden_state") + _text(4, "Gather")
    whole = _piece(1, gather) + _text(2, "tiny") + _piece(5, weights)
    whole += _piece(11, _value("input_ids", INT64, 2)) + _piece(11, _value("attention_mask", INT64, 2))
    whole += _piece(12, _value("last_hidden_state", FLOAT, 3))
    return _number(1, 8) + _piece(7, whole) + _piece(8, _text(1, "") + _number(2, 13))


def _value(name: str, kind: int, axes: int) -> bytes:
    shape = b"".join(_piece(1, _text(2, f"axis{axis}")) for axis in range(axes))
    return _text(1, name) + _piece(2, _piece(1, _number(1, kind) + _piece(2, shape)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _piece(field, value.encode())


def _piece(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


FILES = {"onnx/model.onnx": graph(), "tokenizer.json": tokenizer(), "special_tokens_map.json": b"{}"}
TINY = Model(
    name="tiny",
    runtime="onnx",
    dimension=DIMENSION,
    files=(
        *(
            File(name.rpartition("/")[2], name, len(FILES[name]), hashlib.sha256(FILES[name]).hexdigest())
            for name in ("onnx/model.onnx", "tokenizer.json")
        ),
        File("special_tokens_map.json", "special_tokens_map.json"),
    ),
    hub="somebody/tiny",
    revision=REVISION,
    licence="none",
    languages="a dozen words",
)


def put_tiny(folder: Path) -> Path:
    """Its files in this folder, as if they had been downloaded."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in FILES.items():
        (folder / name.rpartition("/")[2]).write_bytes(content)
    return folder


class Hub(ThreadingHTTPServer):
    """What it serves can be altered; what it was asked is written down."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = dict(FILES)
        self.asked: list[tuple[str, str, str | None]] = []  # method, file, range
        self.breaks_once: set[str] = set()  # files whose first answer ends in the middle

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, with_body: bool) -> None:
        start = f"/{TINY.hub}/resolve/{REVISION}/"
        name = self.path.removeprefix(start)
        span = self.headers.get("Range")
        self.server.asked.append((self.command, name, span))
        body = self.server.files.get(name)
        if not self.path.startswith(start) or body is None:
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        first = int(span.removeprefix("bytes=").partition("-")[0]) if span else 0
        self.send_response(206 if first else 200)
        self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
        self.send_header("X-Repo-Commit", REVISION)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(body) - first))
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(body) - 1}/{len(body)}")
        self.end_headers()
        if with_body and name in self.server.breaks_once:
            self.server.breaks_once.discard(name)
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
        elif with_body:
            self.wfile.write(body[first:])

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[Hub]:
    hub = Hub()
    thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()
        thread.join()
