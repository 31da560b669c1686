"""Text cut into the pieces of a unigram vocabulary, as SentencePiece cuts it, in plain Python.

Law: the same pieces as the reference program. No piece spans two words, so each word is cut once and
remembered; that makes a text cost a look-up per word, and needs no compiled tokenizer."""

from __future__ import annotations

import unicodedata
from array import array
from collections.abc import Iterator
from pathlib import Path
from struct import unpack_from

SPACE = "\u2581"  # how the vocabulary writes the start of a word
UNKNOWN, BEGIN, END = 0, 1, 2
# A piece of no vocabulary costs this much more than the rarest one.
UNKNOWN_PENALTY = 10.0
# Words remembered at most; they take about 10 MB.
REMEMBERED = 50_000


class Pieces:
    """A vocabulary with its normalisation. Safe to share between threads: what it remembers is recomputable."""

    def __init__(self, pieces: list[str], scores: array[float], letters: Letters) -> None:
        self._ids = dict(zip(pieces, range(len(pieces)), strict=True))
        self._scores = scores
        self._letters = letters
        self._longest = max(map(len, pieces))
        self._unknown_score = min(scores) - UNKNOWN_PENALTY
        self._words: dict[str, tuple[int, ...]] = {}

    @classmethod
    def read(cls, path: Path) -> Pieces:
        """From a `.model` file of SentencePiece."""
        pieces: list[str] = []
        scores = array("f")
        charsmap = b""
        model = path.read_bytes()
        for field, start, end in _fields(model, 0, len(model)):
            if field == 1:
                piece, score = _piece(model, start, end)
                pieces.append(piece)
                scores.append(score)
            elif field == 3:  # the normaliser, whose second field is its table
                charsmap = next((model[s:e] for inner, s, e in _fields(model, start, end) if inner == 2), b"")
        return cls(pieces, scores, Letters(charsmap))

    def ids(self, text: str) -> list[int]:
        """The pieces of a text, between the marks of its beginning and its end."""
        found = [BEGIN]
        words = self._words
        for word in self.normal(text).split(" "):
            if word:
                cut = words.get(word)
                if cut is None:
                    if len(words) >= REMEMBERED:
                        words.clear()
                    cut = words[word] = tuple(self._cut(SPACE + word))
                found += cut
        if len(found) == 1:
            found.append(UNKNOWN)
        found.append(END)
        return found

    def count(self, text: str) -> int:
        return len(self.ids(text)) - 2

    def normal(self, text: str) -> str:
        """Compatible forms made one, control characters dropped, every kind of space a space."""
        if not text.isascii():
            text = unicodedata.normalize("NFKC", text)
        return text.translate(self._letters)

    def _cut(self, word: str) -> Iterator[int]:
        """The likeliest way to write the word in pieces: the best end at each place, then back along them."""
        length = len(word)
        best = [0.0] + [float("-inf")] * length
        began = [0] * (length + 1)
        piece = [UNKNOWN] * (length + 1)
        for start in range(length):
            for end in range(start + 1, min(start + self._longest, length) + 1):
                known = self._ids.get(word[start:end])
                if known is not None:
                    score = best[start] + self._scores[known]
                elif end == start + 1:
                    known, score = UNKNOWN, best[start] + self._unknown_score
                else:
                    continue
                if score > best[end]:
                    best[end], began[end], piece[end] = score, start, known
        way = []
        while length:
            way.append(piece[length])
            length = began[length]
        return reversed(way)


class Letters(dict[int, str]):
    """What each character becomes, found in the model's table when it is first met.

    The table is a double-array trie over UTF-8 (four-byte size, units, then texts that end in NUL)."""

    def __init__(self, charsmap: bytes) -> None:
        size = int.from_bytes(charsmap[:4], "little")
        units = array("I")
        units.frombytes(charsmap[4 : 4 + size])
        self._units = units
        self._texts = charsmap[4 + size :]

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        self[code] = became = self._became(letter.encode("utf-8", "replace")) if self._units else letter
        return letter if became is None else became

    def _became(self, letter: bytes) -> str:
        units = self._units
        node = _offset(units[0])
        for byte in letter:
            node ^= byte
            unit = units[node]
            if unit & 0x800000FF != byte:
                return letter.decode("utf-8")
            node ^= _offset(unit)
        if not unit & 0x100:  # some longer text starts so, this one is as it is
            return letter.decode("utf-8")
        place = units[node] & 0x7FFFFFFF
        return self._texts[place : self._texts.index(b"\0", place)].decode("utf-8")


def _offset(unit: int) -> int:
    return (unit >> 10) << ((unit & 0x200) >> 6)


def _number(data: bytes, place: int) -> tuple[int, int]:
    """A protobuf number and the place after it."""
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7


def _fields(data: bytes, place: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Number, start and end of each field of a protobuf message."""
    while place < end:
        key, place = _number(data, place)
        match key & 7:
            case 0:
                start, (_, place) = place, _number(data, place)
            case 1:
                start, place = place, place + 8
            case 2:
                size, start = _number(data, place)
                place = start + size
            case 5:
                start, place = place, place + 4
            case kind:
                raise ValueError(f"no protobuf field is of kind {kind}")
        yield key >> 3, start, place


def _piece(data: bytes, start: int, end: int) -> tuple[str, float]:
    """One entry of the vocabulary: its text (field 1, always first and short) and its score (2), a float.

    Read by hand: there are 128,000 of them, and reading each as a message took four times as long."""
    size = data[start + 1]
    if data[start] != 0x0A or size > 0x7F:
        raise ValueError("this is no vocabulary that SentencePiece wrote")
    after = start + 2 + size
    text = data[start + 2 : after].decode("utf-8")
    return text, unpack_from("<f", data, after + 1)[0] if after < end and data[after] == 0x15 else 0.0
