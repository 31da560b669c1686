"""Which files a caller may name: inside the allowed roots, and not through a link that leads out of them."""

from __future__ import annotations

import os
from collections.abc import Iterable

from mcp_memory.facts import BadInput


def confined(path: str, roots: Iterable[str]) -> str:
    """The real path of a file a caller named, or BadInput when it lies outside every root."""
    if not path:
        raise BadInput("A path is required, such as ~/memory.jsonl.")
    if "\0" in path:
        raise BadInput("A path cannot hold a NUL character.")
    real = os.path.realpath(os.path.expanduser(path))
    for root in roots:
        base = os.path.realpath(os.path.expanduser(root))
        if os.path.normcase(real).startswith(os.path.normcase(os.path.join(base, ""))):
            return real
    raise BadInput(
        f"{path} lies outside the folders this server may read ({', '.join(roots)}). "
        "Move the file there, or start the server with another --roots."
    )
