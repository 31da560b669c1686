"""Rows of an adopted file that cannot stay as they were: written down whole, as JSON, in a table of their own.

The table exists only in files that needed it. Nothing of ours reads it."""

from __future__ import annotations

from typing import Any

import apsw
import msgspec

CREATE = """CREATE TABLE IF NOT EXISTS adoption_leftovers (
    table_name TEXT NOT NULL,
    reason TEXT NOT NULL,
    row_json TEXT NOT NULL
)"""
KEEP = "insert into adoption_leftovers (table_name, reason, row_json) values (?, ?, ?)"


class Leftovers:
    def __init__(self, connection: apsw.Connection) -> None:
        self.run = connection.execute
        self.run_many = connection.executemany
        self.count = 0

    def keep(self, table: str, where: str, reason: str, known_as: str | None = None) -> int:
        """Write down every row of a table for which this is true; answers how many."""
        names = [name for (name,) in self.run("select name from pragma_table_xinfo(?)", (table,))]
        # Text comes as bytes, marked: it may not be text at all.
        values = ", ".join(
            f"typeof({column}), case typeof({column}) when 'text' then cast({column} as blob) else {column} end"
            for column in map(quoted, names)
        )
        rows = self.run(f"select {values} from {table} where {where}").fetchall()
        if rows:
            self.run(CREATE)
            self.run_many(KEEP, [(known_as or table, reason, _json(names, row)) for row in rows])
            self.count += len(rows)
        return len(rows)


def _json(names: list[str], row: tuple[Any, ...]) -> str:
    kinds, values = row[::2], row[1::2]
    return msgspec.json.encode(dict(zip(names, map(_told, kinds, values), strict=True))).decode()


def _told(kind: str, value: Any) -> Any:
    """A value as JSON can tell it; what is no text is told in hexadecimal digits."""
    if kind == "text":
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"text_hex": value.hex()}
    return {"blob_hex": value.hex()} if kind == "blob" else value


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
