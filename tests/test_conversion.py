"""Memories move between formats: whole where the target can hold it, counted where it cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory.assembly import open_space
from mcp_memory.changes import (
    AnyChange,
    EntityCreated,
    ObservationFlagged,
    ObservationsAdded,
    ObservationSuperseded,
    Plan,
    ReflectionAdded,
    RelationCreated,
    RelationEnded,
)
from mcp_memory.checkup import differences
from mcp_memory.conversion import export_memory, import_memory
from mcp_memory.errand import Errand
from mcp_memory.facts import PLACEHOLDER, BadInput
from mcp_memory.graph import Graph
from mcp_memory.space import Space
from mcp_memory.stores.journal import mcpmem
from mcp_memory.stores.store import StoreFault
from tests.conftest import Caller, link, person
from tests.stores import predecessor
from tests.stores.test_mcpmem import EXAMPLE, EXAMPLE_RECORDS
from tests.test_command import Run, no_settings_of_this_machine, run  # noqa: F401  (fixtures)

SUFFIXES = (".jsonl", ".mcpmem", ".db")

PLAIN: list[AnyChange] = [
    EntityCreated(1, "Ada", "Person", first=1, texts=["likes tea", "lives in Łódź"]),
    EntityCreated(2, "Bob", "Person", first=3, texts=["a\u2028b"]),
    EntityCreated(3, "nobody yet", "Generic", PLACEHOLDER),
    RelationCreated(1, 1, 2, "knows"),
    RelationCreated(2, 2, 3, "waits for"),
    RelationCreated(3, 1, 1, "knows"),
]
RICH: list[AnyChange] = [
    EntityCreated(4, "Atlas", "Project", "archivado", 4, ["is large"]),
    ObservationsAdded(4, 5, ["must be small"], "decision"),
    ObservationSuperseded(4, 4, 5),
    ObservationFlagged(1, 1, 1),
    RelationCreated(4, 1, 4, "leads", "since spring"),
    RelationCreated(5, 2, 4, "leads"),
    RelationEnded(5),
    ReflectionAdded(1, "entity", 4, "claude", "it grew", "calm"),
    ReflectionAdded(2, "relation", 4, "claude", "it helps"),
    ReflectionAdded(3, "global", None, "claude", "all is well"),
]


def filled(path: Path, *changes: AnyChange) -> Path:
    space = open_space(path)
    space.commit(lambda graph: Plan(list(changes)))
    space.close()
    return path


def held(path: Path) -> Any:
    """What a file holds, by name: types, texts, and relations in no order."""
    space = open_space(path)
    found = held_of(space.graph())
    assert [finding.text for finding in space.check()] == []
    space.close()
    return found


def held_of(graph: Graph) -> Any:
    entities = [(one.name, one.entity_type, one.texts()) for one in graph.entities()]
    names = {(graph.name_of(r.source), r.relation_type, graph.name_of(r.target)) for r in graph.active_relations()}
    return entities, names


def exported(source: Path, target: Path) -> dict[str, Any]:
    space = open_space(source)
    try:
        return export_memory(space, str(target), Errand())
    finally:
        space.close()


def imported(source: Path, target: Path) -> dict[str, Any]:
    space = open_space(target)
    errand = Errand()
    errand.space = space
    try:
        return import_memory(errand, str(source))
    finally:
        space.close()


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_journal_that_gets_everything_at_once_can_be_cut_and_keeps_all_but_the_end(
    tmp_path: Path, version: int
) -> None:
    """Nothing of it stands in a transaction, which would be gone with its last byte."""
    people = [
        EntityCreated(number, f"Person {number}", "Person", first=number, texts=["x"]) for number in range(1, 400)
    ]
    source = filled(tmp_path / "from.db", *people, *[RelationCreated(n, n, n + 1, "knows") for n in range(1, 399)])
    target = tmp_path / "to.mcpmem"
    if version:
        target.write_bytes(mcpmem.MAGIC[version])
        imported(source, target)
    else:
        exported(source, target)
    content = target.read_bytes()

    assert content.startswith(mcpmem.MAGIC[version or 2])
    assert held(target) == held(source)
    target.write_bytes(content[:-1])
    assert graph_in(target).relation_count == 397
    target.write_bytes(content[: len(content) // 4])
    assert 100 < graph_in(target).entity_count < 399
    assert sorted(file.name for file in tmp_path.iterdir() if "tmp" in file.name) == []


@pytest.mark.parametrize("facts", [[], PLAIN])
def test_a_journal_of_version_1_is_written_for_older_servers(
    tmp_path: Path,
    run: Run,  # noqa: F811
    facts: list[AnyChange],
) -> None:
    source, target = filled(tmp_path / "from.db", *facts), tmp_path / "to.mcpmem"
    if not facts:
        source = tmp_path / "from.jsonl"
        source.touch()
    assert run("export", "-f", source, target, "--journal-version", "1")[0] == 0

    assert target.read_bytes().startswith(mcpmem.MAGIC[1])
    assert held(target) == held(source)
    assert "journal, version 1" in run("stats", "-f", target)[1]


def test_only_a_journal_has_a_version_and_only_two_are_known(tmp_path: Path, run: Run) -> None:  # noqa: F811
    source = filled(tmp_path / "from.db", *PLAIN)
    code, _, said = run("export", "-f", source, tmp_path / "to.jsonl", "--journal-version", "1")
    assert (code, "is no journal" in said) == (1, True)
    code, _, said = run("export", "-f", source, tmp_path / "to.mcpmem", "--journal-version", "3")
    assert (code, "1 or 2" in said) == (2, True)
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith("to.")] == []


def test_what_a_journal_with_facts_gets_comes_whole_or_not_at_all(tmp_path: Path) -> None:
    people = [EntityCreated(number, f"Person {number}", "Person") for number in range(1, 400)]
    source = filled(tmp_path / "from.db", *people)
    target = filled(tmp_path / "to.mcpmem", *PLAIN)
    before = held(target)
    imported(source, target)
    target.write_bytes(target.read_bytes()[:-1])

    assert held_of(graph_in(target)) == before


def graph_in(path: Path) -> Graph:
    space = open_space(path)
    try:
        return space.graph()
    finally:
        space.close()


@pytest.mark.parametrize("source", SUFFIXES)
@pytest.mark.parametrize("target", SUFFIXES)
def test_plain_facts_go_from_every_format_into_every_other(tmp_path: Path, source: str, target: str) -> None:
    path = filled(tmp_path / f"from{source}", *PLAIN)
    before = path.read_bytes()
    moved = exported(path, tmp_path / f"to{target}")

    assert held(tmp_path / f"to{target}") == held(path)
    assert (moved["entities_imported"], moved["relations_imported"]) == (2, 3)
    assert "not_held" not in moved
    if source != ".db":
        assert path.read_bytes() == before


def test_a_database_goes_into_another_with_ids_times_kinds_and_history(tmp_path: Path) -> None:
    source = filled(tmp_path / "from.db", *PLAIN, *RICH)
    exported(source, tmp_path / "to.db")
    one, other = graph_in(source), graph_in(tmp_path / "to.db")
    other.seq = one.seq

    assert list(differences(one, other)) == []


@pytest.mark.parametrize("target", SUFFIXES)
def test_no_nul_comes_into_a_memory_from_another_one(tmp_path: Path, target: str) -> None:
    source = filled(
        tmp_path / "from.db",
        EntityCreated(1, "Ada\0", "Per\0son", first=1, texts=["likes\0tea", "C:\\u0000"]),
        EntityCreated(2, "Ada\ufffd", "Person"),
        RelationCreated(1, 1, 2, "knows\0"),
        RelationCreated(2, 1, 2, "knows\ufffd"),
    )
    moved = exported(source, tmp_path / f"to{target}")
    entities, relations = held(tmp_path / f"to{target}")

    assert moved["not_held"] == {"NUL characters, now U+FFFD": 2}
    assert entities == [("Ada\ufffd", "Per\ufffdson", ["likes\ufffdtea", "C:\\u0000"]), ("Ada\ufffd #2", "Person", [])]
    assert relations == {("Ada\ufffd", "knows\ufffd", "Ada\ufffd #2")}


@pytest.mark.parametrize("target", [".jsonl", ".mcpmem"])
def test_what_a_plain_format_cannot_hold_is_counted_and_the_rest_is_there(tmp_path: Path, target: str) -> None:
    source = filled(tmp_path / "from.db", *PLAIN, *RICH)
    moved = exported(source, tmp_path / f"to{target}")

    assert moved["not_held"] == {
        "statuses of entities": 1,
        "superseded observations": 1,
        "flags of observations": 1,
        "kinds of observations": 1,
        "contexts of relations": 1,
        "ended relations": 1,
        "reflections": 3,
    }
    entities, relations = held(tmp_path / f"to{target}")
    assert entities[-1] == ("Atlas", "Project", ["must be small"])
    assert relations == {
        ("Ada", "knows", "Bob"),
        ("Bob", "waits for", "nobody yet"),
        ("Ada", "knows", "Ada"),
        ("Ada", "leads", "Atlas"),
    }


def test_texts_too_long_for_a_journal_are_counted_too(tmp_path: Path) -> None:
    long = EntityCreated(1, "Ada", "t", first=1, texts=["short", "x" * 65_536, "ü" * 32_768])
    source = filled(tmp_path / "from.jsonl", long)

    assert exported(source, tmp_path / "to.mcpmem")["not_held"] == {"observations of more than 65,535 bytes": 2}
    assert held(tmp_path / "to.mcpmem")[0] == [("Ada", "t", ["short"])]


@pytest.mark.parametrize("target", SUFFIXES)
@pytest.mark.parametrize("source", [".mcpmem", ".db"])
def test_importing_keeps_what_was_known_and_may_be_repeated(tmp_path: Path, source: str, target: str) -> None:
    path = filled(tmp_path / f"from{source}", *PLAIN)
    known: list[AnyChange] = [
        EntityCreated(1, "Bob", "Poet", first=1, texts=["writes"]),
        EntityCreated(2, "Ada", "Generic", PLACEHOLDER),
        RelationCreated(1, 1, 2, "likes"),
        RelationCreated(2, 2, 1, "knows"),
    ]
    here = filled(tmp_path / f"here{target}", *known)
    first = imported(path, here)
    after = held(here)
    again = imported(path, here)

    assert (first["relations_imported"], again["relations_imported"]) == (2, 0)
    assert after[1] == held(path)[1] | {("Bob", "likes", "Ada")}
    assert {name: (kind, texts) for name, kind, texts in after[0]} == {
        "Bob": ("Poet", ["writes", "a\u2028b"]),
        "Ada": ("Person", ["likes tea", "lives in Łódź"]),
    }
    assert held(here) == after


def test_history_and_reflections_are_merged_and_not_doubled(tmp_path: Path) -> None:
    source = filled(tmp_path / "from.db", *PLAIN, *RICH)
    here = filled(
        tmp_path / "here.db",
        EntityCreated(1, "other", "t"),
        EntityCreated(2, "Atlas", "Project", first=1, texts=["is large"]),
        EntityCreated(3, "Bob", "Person"),
        RelationCreated(1, 3, 2, "leads"),
    )
    imported(source, here)
    imported(source, here)
    graph = graph_in(here)

    atlas = graph["Atlas"]
    assert [(seen.text, seen.kind, seen.superseded_at) for seen in atlas.observations] == [
        ("is large", "generic", None),
        ("must be small", "decision", None),
    ]
    assert atlas.observations[1].supersedes == atlas.observations[0].id
    bob_leads = graph.relation(graph["Bob"].id, atlas.id, "leads")
    assert bob_leads is not None and bob_leads.is_active
    ada_leads = graph.relation(graph["Ada"].id, atlas.id, "leads")
    assert ada_leads is not None and ada_leads.context == "since spring"
    assert [(one.target_type, one.target_id) for one in graph.reflections.values()] == [
        ("entity", atlas.id),
        ("relation", ada_leads.id),
        ("global", None),
    ]


def test_the_predecessors_database_is_read_and_not_touched(tmp_path: Path) -> None:
    source = tmp_path / "old.db"
    predecessor.build(source)
    before = source.read_bytes()
    moved = imported(source, tmp_path / "to.db")

    assert moved["entities_imported"] > 0
    assert source.read_bytes() == before
    assert {file.name for file in tmp_path.iterdir() if file.name.startswith("old")} == {"old.db"}
    opened = graph_in(source)  # now it is taken over in place, and says the same
    assert [entity.name for entity in opened.entities()] == [
        one.name for one in graph_in(tmp_path / "to.db").entities()
    ]


def test_a_damaged_journal_gives_what_can_be_read_and_stays_as_it_is(tmp_path: Path) -> None:
    source = tmp_path / "old.mcpmem"
    damaged = bytearray(mcpmem.MAGIC[2] + mcpmem.frame(EXAMPLE_RECORDS[:2], 2) + b"torn")
    damaged[16] ^= 1
    source.write_bytes(damaged)
    moved = imported(source, tmp_path / "to.db")

    assert held(tmp_path / "to.db")[0] == [("B", "t", [])]
    assert moved["skipped"] == 2
    assert source.read_bytes() == damaged
    assert {file.name for file in tmp_path.iterdir() if file.name.startswith("old")} == {"old.mcpmem"}


def test_an_export_does_not_write_over_anything_and_leaves_nothing_beside(tmp_path: Path) -> None:
    source = filled(tmp_path / "from.jsonl", *PLAIN)
    exported(source, tmp_path / "to.mcpmem")
    before = (tmp_path / "to.mcpmem").read_bytes()
    with pytest.raises(BadInput, match="exists already"):
        exported(source, tmp_path / "to.mcpmem")
    with pytest.raises(BadInput, match=r"told by its suffix: .jsonl, .json, .mcpmem, .db"):
        exported(source, tmp_path / "to.txt")

    assert (tmp_path / "to.mcpmem").read_bytes() == before
    assert {file.name for file in tmp_path.glob("to*")} == {"to.mcpmem"}


def test_a_file_that_is_no_memory_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.mcpmem").write_bytes(b"nonsense")
    with pytest.raises(StoreFault, match=r"x\.mcpmem is not a journal"):
        imported(tmp_path / "x.mcpmem", tmp_path / "to.db")
    with pytest.raises(StoreFault, match=r"missing\.db cannot be read"):
        imported(tmp_path / "missing.db", tmp_path / "to.db")
    with pytest.raises(StoreFault, match=r"Cannot read .*missing\.mcpmem"):
        imported(tmp_path / "missing.mcpmem", tmp_path / "to.db")


# ── the tool and the commands ────────────────────────────────────────────────────────────────────


def test_migrate_takes_a_journal(call: Caller) -> None:
    source = Path(call.space.roots[0]) / "old.mcpmem"
    source.write_bytes(EXAMPLE)

    assert call("migrate", source_path=str(source)) == {
        "entities_imported": 1,
        "relations_imported": 0,
        "errors": 0,
        "skipped": 0,
    }
    assert call("get_entity", name="A") == {"name": "A", "entityType": "t", "observations": ["x"]}


def test_migrate_refuses_the_memory_itself(call: Caller, memory_file: Path) -> None:
    call("create_entities", entities=[person("Ada")])

    assert "is this memory itself" in call.refusal("migrate", source_path=str(memory_file))


@pytest.mark.parametrize("target", SUFFIXES)
def test_a_person_exports_and_imports_in_two_commands(run: Run, tmp_path: Path, target: str) -> None:  # noqa: F811
    source = filled(tmp_path / "from.db", *PLAIN, *RICH)
    code, printed, _ = run("-f", source, "export", tmp_path / f"copy{target}")
    assert code == 0
    assert "entities_exported" in printed
    assert ("1 superseded observations" in printed and "3 reflections" in printed) == (target != ".db")

    code, printed, _ = run("-f", tmp_path / "back.db", "import", tmp_path / f"copy{target}")
    assert code == 0
    assert run("-f", tmp_path / "back.db", "doctor")[0] == 0
    assert {name for name, *_ in held(tmp_path / "back.db")[0]} == {"Ada", "Bob", "Atlas"}


NAMES = st.sampled_from(["a", "b", "c", "d"])


@given(
    st.lists(st.tuples(NAMES, st.lists(st.sampled_from("xyz"), max_size=3)), max_size=5),
    st.lists(st.tuples(NAMES, NAMES), max_size=4),
    st.sampled_from(SUFFIXES),
    st.sampled_from([".mcpmem", ".db"]),
)
@settings(max_examples=25, deadline=None)
def test_there_and_back_is_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    entities: list[tuple[str, list[str]]],
    relations: list[tuple[str, str]],
    here: str,
    there: str,
) -> None:
    folder = tmp_path_factory.mktemp("there")
    space: Space = open_space(folder / f"one{here}")
    call = Caller(space)
    for name, texts in entities:
        call("create_entities", entities=[person(name, *texts)])
    if relations:
        call("create_relations", relations=[link(one, "r", other) for one, other in relations])
    space.close()
    exported(folder / f"one{here}", folder / f"two{there}")
    imported(folder / f"two{there}", folder / f"three{here}")

    assert held(folder / f"three{here}") == held(folder / f"one{here}")
