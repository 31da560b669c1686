"""Our server, which answers as it should and never brings anything to the disk: to be found out.

The same arguments as `mcp_memory.torture.victim`."""

from __future__ import annotations

import sys

from mcp_memory.stores.onefile import OneFile
from mcp_memory.stores.sqlite.store import SqliteStore
from mcp_memory.torture import victim


def nothing(*_: object) -> None:
    """Instead of a flush."""


if __name__ == "__main__":
    OneFile.settle = nothing  # type: ignore[method-assign, assignment]
    SqliteStore._flush = nothing  # type: ignore[method-assign, assignment]
    sys.exit(victim.main(sys.argv[1:]))
