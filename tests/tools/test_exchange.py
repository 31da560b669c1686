"""A memory of the official server comes in whole; what cannot be read is kept aside and counted."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.conftest import Caller, link, person

GOOD = [
    '{"type":"relation","from":"Ada","to":"Bob","relationType":"knows"}',
    '{"type":"entity","name":"Ada","entityType":"Person","observations":["likes tea","a\u2028b"]}',
    '{"type":"entity","name":"Bob","entityType":"Person","observations":[]}',
]
NO_RECORDS = ["nonsense", "[1]", '{"type":"song"}', '{"type":"entity"}', '{"name":"no type"}']
UNKNOWN_END = '{"type":"relation","from":"Ada","to":"Nobody","relationType":"knows"}'
WRONG = '{"type":"entity","name":"Cy","entityType":"Person","observations":[{"text":"x"}]}'


def file(call: Caller, *lines: str, name: str = "old.jsonl") -> str:
    path = Path(call.space.roots[0]) / name
    path.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    return str(path)


def test_everything_readable_is_imported_whatever_the_order_of_lines(call: Caller) -> None:
    assert call("migrate", source_path=file(call, *GOOD)) == {
        "entities_imported": 2,
        "relations_imported": 1,
        "errors": 0,
        "skipped": 0,
    }
    assert call("get_entity", name="Ada") == person("Ada", "likes tea", "a\u2028b")
    assert call("search_relations")["relations"] == [{"id": 1, **link("Ada", "knows", "Bob")}]


def test_importing_twice_changes_nothing(call: Caller) -> None:
    path = file(call, *GOOD)
    call("migrate", source_path=path)
    before = call("read_graph")

    assert call("migrate", source_path=path)["relations_imported"] == 0
    assert call("read_graph") == before


def test_what_was_known_is_kept(call: Caller) -> None:
    call("create_entities", entities=[{"name": "Ada", "entityType": "Poet", "observations": ["writes"]}])

    call("migrate", source_path=file(call, *GOOD))

    assert call("get_entity", name="Ada") == {
        "name": "Ada",
        "entityType": "Poet",
        "observations": ["writes", "likes tea", "a\u2028b"],
    }


def test_bad_lines_are_counted_and_kept_aside_once(call: Caller) -> None:
    path = file(call, *GOOD, *NO_RECORDS, UNKNOWN_END, WRONG)

    answer = call("migrate", source_path=path)
    call("migrate", source_path=path)

    assert (answer["entities_imported"], answer["skipped"], answer["errors"]) == (2, 6, 1)
    assert answer["note"].startswith("Relations to entities that were never created are skipped: 1.")
    kept = Path(answer["quarantine"]).read_text(encoding="utf-8").splitlines()
    assert sorted(kept) == sorted([*NO_RECORDS, UNKNOWN_END, WRONG])


def test_what_is_no_character_costs_only_itself_and_the_line_is_kept_as_it_was(call: Caller) -> None:
    bad = [
        r'{"type":"entity","name":"Cy\u0000","entityType":"Person","observations":["cut \ud83d","C:\\u0000"]}',
        r'{"type":"relation","from":"Ada","to":"Cy\u0000","relationType":"kno\u0000ws"}',
    ]
    answer = call("migrate", source_path=file(call, *GOOD, *bad))

    assert (answer["entities_imported"], answer["relations_imported"]) == (3, 2)
    assert (answer["skipped"], answer["errors"]) == (0, 0)
    assert call("get_entity", name="Cy\ufffd") == person("Cy\ufffd", "cut \ufffd", "C:\\u0000")
    assert call("search_relations", source="Ada")["relations"][1]["relationType"] == "kno\ufffdws"
    assert Path(answer["quarantine"]).read_text(encoding="utf-8").splitlines() == bad


def test_a_file_of_rubbish_harms_nobody(call: Caller) -> None:
    path = Path(file(call))
    path.write_bytes(os.urandom(3000) + b"\n\xff\xfe{}\n" + b"[" * 20_000)

    assert call("migrate", source_path=str(path))["entities_imported"] == 0


def test_only_files_inside_the_allowed_folders_are_read(call: Caller, tmp_path_factory: object) -> None:
    outside = "/etc/hostname" if os.name == "posix" else "C:\\Windows\\win.ini"
    assert "lies outside" in call.refusal("migrate", source_path=outside)
    assert "lies outside" in call.refusal("migrate", source_path=call.space.roots[0] + "/../../x")
    trap = Path(call.space.roots[0]) / "trap.jsonl"
    trap.symlink_to(outside)
    assert "lies outside" in call.refusal("migrate", source_path=str(trap))
    assert "required" in call.refusal("migrate")
    assert "cannot be read" in call.refusal("migrate", source_path=str(trap.with_name("missing.jsonl")))


# ── export_graph ─────────────────────────────────────────────────────────────────────────────────


def test_an_export_as_json_is_the_whole_graph(call: Caller) -> None:
    call("create_entities", entities=[person("Ada", "likes tea"), person("Bob")])
    call("create_relations", relations=[link("Ada", "knows", "Bob")])

    exported = call("export_graph")

    assert exported["format"] == "json"
    assert json.loads(exported["content"]) == call("read_graph")


def test_a_drawing_follows_every_change(call: Caller) -> None:
    call("create_entities", entities=[person("Ada")])

    for form, with_ada, with_bob in (
        ("mermaid", 'graph LR\n  n0["Ada"]\n', '  n1["Bob"]\n'),
        ("dot", 'digraph G {\n  n0 [label="Ada"];\n}\n', '  n1 [label="Bob"];\n'),
    ):
        assert call("export_graph", format=form) == {"format": form, "content": with_ada}
        assert call("export_graph", format=form)["content"] == with_ada
        call("create_entities", entities=[person("Bob")])
        assert with_bob in call("export_graph", format=form)["content"]
        call("delete_entities", entityNames=["Bob"])
        assert call("export_graph", format=form)["content"] == with_ada


def test_the_text_of_an_export_is_the_drawing_itself(call: Caller) -> None:
    answer = call.desk.call(call.desk.tools["export_graph"], b'{"format":"dot"}')

    assert answer.text == "digraph G {\n}\n"


def test_only_three_forms_can_be_exported(call: Caller) -> None:
    assert "format must be one of dot, json, mermaid" in call.refusal("export_graph", format="yaml")
