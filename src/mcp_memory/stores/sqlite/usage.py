"""Usage and trials in SQL: what was shown in the documented tables, what was used in ours beside them.

The statements need a table `entities(id, name)` and the documented tables, nothing else: a database has
them, and so has the small file beside a memory of another format (stores/usage.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import apsw

from mcp_memory.search.habits import Credit, Ending, Habits, Search
from mcp_memory.search.limbic import Company, Ranked, Use
from mcp_memory.search.routing import SHARES, route
from mcp_memory.search.trials import Part, Trial, arm, hash_of
from mcp_memory.stores.sqlite.queries import Queries, read_sql

SQL, PROJECT = Queries("usage"), Queries("project")
# Pairs grow with the square of what is served; the documented "top-K" are these.
COMPANY_OF_TOP = 10
# A result of the predecessor that only its text had found carries no similarity; it counted as this or more.
TEXT_ONLY_BASE = 0.2
PASSING = (SQL.pass_use, SQL.pass_use_days, SQL.pass_use_above, SQL.pass_use_below)
PASSING_TRIALS = (SQL.pass_results, SQL.pass_base, SQL.pass_feedback)
PASSING_SHOWN = (PROJECT.pass_access, PROJECT.pass_access_days, PROJECT.pass_company_above, PROJECT.pass_company_below)


def is_there(connection: apsw.Connection) -> bool:
    """Was anything ever written down here?"""
    return bool(connection.execute(SQL.is_there).get)


def has_echo(connection: apsw.Connection) -> bool:
    """Or were the last searches written down by an earlier version?"""
    return bool(connection.execute(SQL.has_echo).get)


# ── writing ──────────────────────────────────────────────────────────────────────────────────────


def write(connection: apsw.Connection, searches: Sequence[Search], credits: Sequence[Credit], most_events: int) -> int:
    """Write down searches and what was used after them; the number of this batch. Inside a transaction."""
    if not is_there(connection):
        connection.execute(read_sql("schema", "usage.sql"))
    elif not has_echo(connection):
        connection.execute(SQL.bring_echo)
    _write_shown(connection, searches)
    for search in searches:
        if search.is_logged:
            search.event_id = _write_trial(connection, search)
    _write_used(connection, credits)
    if any(search.is_logged for search in searches):
        _retain(connection, most_events)
    return int(connection.execute(SQL.batch).get)


def _write_shown(connection: apsw.Connection, searches: Sequence[Search]) -> None:
    """What was served, counted by entity, by day and by pair."""
    last: dict[str, float] = {}
    totals: Counter[str] = Counter()
    days: Counter[tuple[str, float]] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for search in searches:
        names = [row.candidate.name for row in search.rows]
        last.update(dict.fromkeys(names, search.at))
        totals.update(names)
        days.update((name, search.at // 86400 * 86400) for name in names)
        pairs.update(combinations(sorted(names[:COMPANY_OF_TOP]), 2))
    connection.executemany(SQL.shown, [(name, count, last[name]) for name, count in totals.items()])
    connection.executemany(SQL.shown_that_day, [(name, count, day) for (name, day), count in days.items()])
    connection.executemany(
        SQL.shown_together, [(one, other, count, max(last[one], last[other])) for (one, other), count in pairs.items()]
    )


def opened(connection: apsw.Connection, counts: Mapping[str, int], at: float) -> None:
    """Count what was opened, by entity and by day. Inside a transaction."""
    connection.executemany(SQL.shown, [(name, count, at) for name, count in counts.items()])
    connection.executemany(SQL.shown_that_day, [(name, count, at // 86400 * 86400) for name, count in counts.items()])


def _write_trial(connection: apsw.Connection, search: Search) -> int:
    event_id: int = connection.execute(
        SQL.event,
        (
            search.query,
            hash_of(search.query),
            search.at,
            arm(search.query),
            search.limit,
            len(search.rows),
            search.duration_ms,
            search.engine,
        ),
    ).get
    connection.executemany(SQL.result, [_result(event_id, rank, row) for rank, row in enumerate(search.rows, 1)])
    connection.executemany(SQL.base, [(event_id, row.candidate.name, row.base, row.echo) for row in search.rows])
    return event_id


def _result(event_id: int, rank: int, row: Ranked) -> tuple[Any, ...]:
    distance = row.candidate.distance
    return (
        event_id,
        row.candidate.name,
        rank,
        row.limbic_score,
        None if distance is None else 1 - distance,
        row.importance,
        row.temporal_factor,
        row.cooc_boost,
        row.baseline_rank,
    )


def _write_used(connection: apsw.Connection, credits: Iterable[Credit]) -> None:
    for credit in credits:
        connection.execute(SQL.used, (credit.name, credit.at))
        connection.execute(SQL.used_that_day, (credit.name, credit.at))
        for other in credit.beside:
            connection.execute(SQL.used_together, (credit.name, other, credit.at))
        search = credit.search
        if search.event_id is not None:
            delay = round(credit.at - search.at)
            connection.execute(SQL.feedback, (search.event_id, credit.name, delay, search.origin or None))


def _retain(connection: apsw.Connection, most: int) -> None:
    """Keep the log within its bound: the oldest go."""
    oldest = connection.execute(SQL.oldest_kept, (most,)).get or 0
    if oldest > 0:
        for statement in (SQL.forget_feedback, SQL.forget_results, SQL.forget_base, SQL.forget_events):
            connection.execute(statement, (oldest,))


def pass_on(connection: apsw.Connection, into: int, gone: int) -> None:
    """Let the use of an entity that was merged count for the one that absorbed it."""
    if is_there(connection):
        for statement in (*PASSING, *PASSING_TRIALS):
            connection.execute(statement, (into, gone))
        connection.execute(SQL.batch).get  # noqa: B018  (whoever has it in memory shall look again)


def end(connection: apsw.Connection, endings: Iterable[Ending]) -> None:
    """The same for a place that hears of endings by name. Inside a transaction."""
    for ending in endings:
        gone = connection.execute(SQL.entity, (ending.name,)).get
        if gone is None:
            continue
        if ending.into is not None:
            connection.execute(SQL.bring_entity, (ending.into,))
            into = connection.execute(SQL.entity, (ending.into,)).get
            for statement in (*PASSING_SHOWN, *PASSING, *PASSING_TRIALS):
                connection.execute(statement, (into, gone))
        connection.execute(SQL.forget_entity, (gone,))


# ── reading ──────────────────────────────────────────────────────────────────────────────────────


def load(connection: apsw.Connection) -> tuple[Habits, int]:
    """Everything used so far, and the number of the last batch."""
    if not is_there(connection):
        return Habits(), 0
    habits = Habits()
    for name, count, last, days in connection.execute(SQL.all_uses):
        habits.uses[name] = Use(count, last, days)
    for one, other, count, last in connection.execute(SQL.all_company):
        company = Company(count, last)
        habits.company.setdefault(one, {})[other] = company
        habits.company.setdefault(other, {})[one] = company
    last_event = 0
    for event_id, query, name in connection.execute(SQL.all_feedback):
        habits.echoes.note(query, name, is_first=event_id != last_event)
        last_event = event_id
    return habits, connection.execute(SQL.batches).get or 0


def shown(connection: apsw.Connection) -> dict[str, Use]:
    """What was shown by a search or used after one, however often."""
    found = {name: Use(count, last or 0.0) for name, count, last in connection.execute(SQL.all_shown)}
    if is_there(connection):
        for name, count, last, days in connection.execute(SQL.all_uses):
            known = found.get(name) or Use()
            found[name] = Use(known.count + count, max(known.last, last or 0.0), days)
    return found


def metadata(connection: apsw.Connection) -> dict[str, str]:
    return dict(connection.execute(SQL.metadata))


def tune(connection: apsw.Connection, values: dict[str, float]) -> None:
    """Make constants other than they were. Inside a transaction."""
    connection.executemany(SQL.set_metadata, [(name, repr(value)) for name, value in values.items()])
    connection.execute(SQL.set_metadata, ("last_tuned_at", connection.execute(SQL.now).get))


def trials(connection: apsw.Connection, most: int) -> list[Trial]:
    """The newest logged searches, oldest first."""
    statement = SQL.results_of_predecessor
    if is_there(connection):
        statement = SQL.results_of if has_echo(connection) else SQL.results_without_echo
    found: list[Any] = connection.execute(SQL.trials, (most,)).fetchall()[::-1]
    return [
        Trial(
            event_id,
            SHARES[route(query, limit)],
            treatment,
            [_part(row) for row in connection.execute(statement, (event_id,))],
        )
        for event_id, query, limit, treatment in found
    ]


def _part(row: tuple[Any, ...]) -> Part:
    entity_id, name, rank, baseline_rank, cosine, importance, temporal, cooc_boost, relevance, base, echo = row
    if base is None:
        base = TEXT_ONLY_BASE if cosine is None else max(cosine, 0.0)
    # Without a place of its own in the baseline it stood behind all that had one.
    last = 1000 + rank
    return Part(
        entity_id,
        name,
        rank,
        last if baseline_rank is None else baseline_rank,
        base,
        importance or 0.0,
        1.0 if temporal is None else max(temporal, 1e-6),
        cooc_boost or 0.0,
        echo or 0.0,
        relevance,
    )
