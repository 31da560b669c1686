"""Giving the tables of an older file their documented form, with every row and every id kept.

A table that lacks something, or says it differently, is made anew and filled from the old one. One with
columns the document does not know (somebody added them) is kept and gets what it lacks. Views, triggers,
indexes and tables of others come out as they went in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import apsw

from mcp_memory.stores.sqlite.leftovers import Leftovers, quoted
from mcp_memory.stores.sqlite.schema import Piece, documented

ASIDE = "before_adoption_"
COLUMN = re.compile(r"^\s+(\w+) (?:TEXT|INTEGER|REAL)\b.*?,?$", re.MULTILINE)
DEFAULT = re.compile(r"NOT NULL DEFAULT (.+)$")


class Reshaping:
    """One file on its way to the documented form, inside one transaction, with foreign keys off."""

    def __init__(self, connection: apsw.Connection, leftovers: Leftovers) -> None:
        self.run = connection.execute
        self.leftovers = leftovers
        self.made_anew: list[str] = []
        self._triggers: list[Any] = []
        self._indexes: list[Any] = []

    def begin(self) -> None:
        """Put triggers aside, so that nothing here looks like somebody's change, and remember the indexes."""
        self._triggers = self.run("select name, sql from sqlite_master where type = 'trigger'").fetchall()
        for name, _ in self._triggers:
            self.run(f"drop trigger {quoted(str(name))}")
        self._indexes = self._statements("index")

    def shape(self) -> None:
        pieces = documented()
        there = dict(self._statements("table"))
        for piece in pieces:
            if piece.kind == "table":
                self._shape_table(piece, there.get(piece.name))
            elif piece.kind == "virtual table":
                # Full text is derived: whatever it was, it is made again from the facts.
                self.run(f"drop table if exists {piece.name}")
                self.run(piece.sql)
        indexes = dict(self._statements("index"))
        for piece in pieces:
            if piece.kind == "index":
                self._shape_index(piece, indexes.get(piece.name))

    def finish(self) -> None:
        """Bring back what was put aside: triggers, and indexes of others on tables made anew."""
        there = dict(self._statements("index"))
        for name, sql in self._indexes:
            if name not in there:
                self.run(sql)
        for _, sql in self._triggers:
            self.run(sql)

    def _statements(self, kind: str) -> list[Any]:
        found = self.run("select name, sql from sqlite_master where type = ? and sql is not null", (kind,))
        return found.fetchall()

    def _shape_index(self, piece: Piece, old: str | None) -> None:
        if old is not None and plain(old) != plain(piece.sql):
            self.run(f"drop index {piece.name}")
            old = None
        if old is None:
            self.run(piece.sql)

    def _shape_table(self, piece: Piece, old: str | None) -> None:
        if old is None:
            self.run(piece.sql)
        elif plain(old) != plain(piece.sql):
            wanted = dict(columns(piece.sql))
            there = self._columns_of(piece.name)
            if any(name not in wanted for name in there):
                for name, definition in wanted.items():
                    if name not in there:
                        self.run(f"alter table {piece.name} add column {definition}")
            else:
                self._make_anew(piece, wanted, there)

    def _columns_of(self, table: str) -> list[str]:
        """Generated columns too, which the plain list of columns hides."""
        return [name.lower() for (name,) in self.run("select name from pragma_table_xinfo(?)", (table,))]

    def _make_anew(self, piece: Piece, wanted: dict[str, str], there: list[str]) -> None:
        table, aside = piece.name, ASIDE + piece.name
        last_id = self.run("select seq from sqlite_sequence where name = ?", (table,)).get
        # The old one makes way, not the new one: a renamed table would carry quotes in its statement.
        self.run(f"alter table {table} rename to {aside}")
        self.run(piece.sql)
        common = [name for name in wanted if name in there]
        values = [_value(name, wanted[name]) for name in common]
        self.run(f"insert or ignore into {table} ({', '.join(common)}) select {', '.join(values)} from {aside}")
        if self._count(table) != self._count(aside):
            same = " and ".join(f"kept.{n} is {aside}.{n}" for n in common if not DEFAULT.search(wanted[n]))
            lost = f"not exists (select 1 from {table} kept where {same})"
            self.leftovers.keep(aside, lost, "it breaks a rule of its table", table)
        self.run(f"drop table {aside}")
        if last_id is not None:  # no id is ever given twice, not even that of a row deleted last
            reached = self.run("select seq from sqlite_sequence where name = ?", (table,)).get or 0
            self.run("delete from sqlite_sequence where name = ?", (table,))
            self.run("insert into sqlite_sequence (name, seq) values (?, ?)", (table, max(last_id, reached)))
        self.made_anew.append(table)

    def _count(self, table: str) -> int:
        return int(self.run(f"select count(*) from {table}").get)


def _value(name: str, definition: str) -> str:
    default = DEFAULT.search(definition)
    return f"coalesce({name}, {default[1]})" if default else name


def columns(sql: str) -> Iterator[tuple[str, str]]:
    """The columns of a documented table, each with its definition."""
    for match in COLUMN.finditer(sql):
        yield match[1], match[0].strip().rstrip(",")


def plain(sql: str) -> str:
    """A statement without the freedoms of layout: two that say the same become equal."""
    return re.sub(r"\s*([(),=])\s*", r"\1", " ".join(sql.split()))
