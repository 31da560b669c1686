"""Named SQL statements from the .sql files beside: `-- name --` opens each, the rest is the statement."""

from __future__ import annotations

import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))


def read_sql(*path: str) -> str:
    with open(os.path.join(HERE, *path), encoding="utf-8") as file:
        return file.read()


class Queries:
    """The statements of one file, as attributes."""

    def __init__(self, name: str) -> None:
        pieces = re.split(r"^-- (\w+) --$", read_sql("queries", f"{name}.sql"), flags=re.MULTILINE)
        for title, statement in zip(pieces[1::2], pieces[2::2], strict=True):
            setattr(self, title, re.sub(r"^--.*\n", "", statement.strip(), flags=re.MULTILINE))

    def __getattr__(self, name: str) -> str:
        raise AttributeError(f"no statement is named {name!r}")
