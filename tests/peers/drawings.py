"""Mermaid and Graphviz themselves, from npm: what they see in a drawing."""

from __future__ import annotations

import html
import json
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec

from tests.peers import PeerFault, node, npm_folder

SVG = "{http://www.w3.org/2000/svg}"
# How Mermaid keeps the codes of characters until it draws.
MERMAID_CODES = {"ﬂ°°": "&#", "ﬂ°": "&", "¶ß": ";"}


class Seen(msgspec.Struct):
    """The nodes and edges that somebody who looks at the drawing would see."""

    nodes: dict[str, str]  # id -> label
    edges: list[tuple[str, str, str]]  # tail, label, head


class Draughtsman:
    """A process that reads one drawing after the other."""

    def __init__(self) -> None:
        script = Path(__file__).with_suffix(".mjs")
        self._process = subprocess.Popen(
            [node(), str(script), str(npm_folder())], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def sees(self, form: str, text: str) -> Seen:
        """What is in the drawing; PeerFault if it is none."""
        said = self._ask({"form": form, "text": text})
        if "error" in said:
            raise PeerFault(f"{said['error']}\n{text}")
        return _seen_in_svg(said["svg"]) if form == "dot" else _seen_by_mermaid(said)

    def _ask(self, question: dict[str, str]) -> dict[str, Any]:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise PeerFault(f"the reader of drawings ended with {self._process.wait(10)}")
        said: dict[str, Any] = json.loads(line)
        return said

    def close(self) -> None:
        self._process.communicate(timeout=30)


def _seen_by_mermaid(said: dict[str, Any]) -> Seen:
    return Seen(
        {ident: _decoded(text) for ident, text in said["nodes"]},
        [(tail, _decoded(text), head) for tail, text, head in said["edges"]],
    )


def _decoded(text: str) -> str:
    for kept, code in MERMAID_CODES.items():
        text = text.replace(kept, code)
    return html.unescape(text)


def _seen_in_svg(svg: str) -> Seen:
    seen = Seen({}, [])
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        title = group.findtext(f"{SVG}title", "")
        label = group.findtext(f"{SVG}text", "").replace("\u00a0", " ")
        if group.get("class") == "node":
            seen.nodes[title] = label
        elif group.get("class") == "edge":
            tail, _, head = title.partition("->")
            seen.edges.append((tail, label, head))
    return seen
