"""An ONNX model of the sentence-transformers kind: pieces in, a row for each piece out, their mean is the vector.

One thread, which does not spin: more gain nothing for a query and take cores from the server. A batch is as
wide as its longest text and no wider; whoever calls sorts texts by length."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mcp_memory.embedding.models import TOKENIZER, WEIGHTS, Model
from mcp_memory.embedding.numerics import Floats, numpy

# What the graphs call what they are given.
IDS, MASK = "input_ids", "attention_mask"
# Pieces in one batch: beyond that a batch leaves the processor's cache and gains nothing.
AT_ONCE = 1024


class OnnxEncoder:
    """The graph with its weights, and its tokenizer. Threads may share it: nothing in it changes."""

    def __init__(self, model: Model, folder: Path) -> None:
        numpy()
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_session_config_entry("session.inter_op.allow_spinning", "0")
        options.log_severity_level = 3
        # What one long text once needed is given back.
        options.enable_cpu_mem_arena = False
        self._graph = onnxruntime.InferenceSession(str(folder / WEIGHTS), options, providers=["CPUExecutionProvider"])
        self._inputs = [given.name for given in self._graph.get_inputs()]
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(model.longest)
        self._uncut = Tokenizer.from_file(str(folder / TOKENIZER))
        self._uncut.no_padding()
        self._uncut.no_truncation()
        self._pooling = model.pooling
        self.dimension = model.dimension or int(self.run([self.cut("a")]).shape[1])

    def cut(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text).ids
        return ids

    def count(self, text: str) -> int:
        return len(self._uncut.encode(text, add_special_tokens=False).ids)

    def run(self, texts: Sequence[list[int]]) -> Floats:
        """Vectors of length 1, in the order of the texts."""
        np = numpy()
        done: list[Floats] = []
        start = 0
        while start < len(texts):
            end, longest = start, 0
            while end < len(texts) and (end == start or max(longest, len(texts[end])) * (end - start + 1) <= AT_ONCE):
                longest = max(longest, len(texts[end]))
                end += 1
            done.append(self._together(texts[start:end], longest))
            start = end
        vectors: Floats = np.concatenate(done)
        return vectors

    def asked(self, vectors: Floats) -> Floats:
        """As they are: these models are taught to find what answers, or by a prefix that theirs is a question."""
        return vectors

    def _together(self, texts: Sequence[list[int]], longest: int) -> Floats:
        np = numpy()
        given = {name: np.zeros((len(texts), longest), np.int64) for name in self._inputs}
        mask = np.zeros((len(texts), longest), np.int64)
        for row, pieces in enumerate(texts):
            given[IDS][row, : len(pieces)] = pieces
            mask[row, : len(pieces)] = 1
        if MASK in given:
            given[MASK] = mask
        rows = self._graph.run(None, given)[0]
        if rows.ndim == 3:
            seen = mask[:, :, None].astype(np.float32)
            rows = rows[:, 0] if self._pooling == "cls" else (rows * seen).sum(axis=1) / np.maximum(seen.sum(axis=1), 1)
        vectors: Floats = rows.astype(np.float32)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors
