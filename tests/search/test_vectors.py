"""What texts mean follows the facts: every change, every store, every restart."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mcp_memory.assembly import open_space
from mcp_memory.embedding.engine import engine_for
from mcp_memory.embedding.models import model_in
from mcp_memory.search.matrix import Matrix
from mcp_memory.search.vectors import ENTITY, OBSERVATION, REFLECTION, Vectors
from mcp_memory.server import main
from mcp_memory.space import Space
from mcp_memory.stores.vectors import KeptVectors
from mcp_memory.tools.catalog import catalog
from tests.conftest import Caller, link, person
from tests.embedding.hub import DIMENSION, FILES
from tests.wire.toy import META, Client


def vectors_of(space: Space) -> Vectors:
    """The vectors of a space once every text has one."""
    vectors = space.vectors
    assert vectors is not None
    assert vectors.wait(30)
    return vectors


def observation(space: Space, text: str) -> int:
    return next(seen.id for entity in space.graph().entities() for seen in entity.active() if seen.text == text)


def nearest(space: Space, query: str, kind: str = OBSERVATION) -> int:
    vectors = vectors_of(space)
    return vectors.nearest(vectors.engine.encode([query], "query"), 1, kind)[0][0]


@pytest.fixture
def pets(call: Caller) -> Caller:
    call(
        "create_entities",
        entities=[
            person("Ada", "The dog sleeps on the sofa", "Interest rates were raised by the bank"),
            person("Berta", "Cooks soup with carrots"),
        ],
    )
    return call


def test_a_meaning_is_found_in_other_words_and_another_language(pets: Caller, space: Space) -> None:
    assert nearest(space, "a puppy is napping on the couch") == observation(space, "The dog sleeps on the sofa")
    assert nearest(space, "el banco subió los tipos de interés") == observation(
        space, "Interest rates were raised by the bank"
    )


def test_what_was_written_deleted_superseded_or_moved_is_so_in_the_vectors(pets: Caller, space: Space) -> None:
    vectors_of(space)
    dog = observation(space, "The dog sleeps on the sofa")
    pets("delete_observations", deletions=[{"entityName": "Ada", "observations": ["The dog sleeps on the sofa"]}])
    pets("add_observations", observations=[{"entityName": "Berta", "contents": ["The cat hunts mice"]}])

    vectors = vectors_of(space)
    assert vectors.of([dog])[1] == [dog]
    assert nearest(space, "a kitten catching a mouse") == observation(space, "The cat hunts mice")

    pets("merge_entities", source="Ada", target="Berta")
    bank = observation(space, "Interest rates were raised by the bank")
    assert nearest(space, "financial markets") == bank
    pets("delete_entities", entityNames=["Berta"])
    assert vectors_of(space).of([bank])[1] == [bank]
    assert len(vectors_of(space)._wanted[OBSERVATION]) == 0


def test_vectors_of_both_runs_are_the_same_and_the_second_embeds_nothing(pets: Caller, space: Space) -> None:
    ids = [seen.id for entity in space.graph().entities() for seen in entity.active()]
    first, _ = vectors_of(space).of(ids)
    space.close()

    again = open_space(space.store.path)  # type: ignore[attr-defined]
    changeover = again.meaning.changeover()
    assert changeover is not None
    changeover.serving._encoded = None  # type: ignore[assignment, method-assign]  # embedding would fail
    second, missing = vectors_of(again).of(ids)
    again.close()

    assert missing == []
    assert np.array_equal(first, second)


def test_an_entity_means_what_is_said_of_it_and_what_it_is_related_to(pets: Caller, space: Space) -> None:
    berta = space.graph().ids["Berta"]
    assert nearest(space, "vegetables, cooking", ENTITY) == berta
    before, _ = vectors_of(space).of_entities([berta])
    pets("create_relations", relations=[link("Berta", "lives with", "Ada")])

    after, missing = vectors_of(space).of_entities([berta])
    assert missing == []
    assert not np.array_equal(before, after)


def test_what_is_deleted_before_its_turn_keeps_nothing_else_from_its_vector(
    call: Caller, space: Space, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """More entities change at once than are looked at while somebody waits, and one that waited already is gone."""
    vectors = vectors_of(space)
    is_asked, may_go_on = threading.Event(), threading.Event()

    def encode(texts: Sequence[str], *_: object) -> Any:
        is_asked.set()
        assert may_go_on.wait(30)
        return np.full((len(texts), vectors.dimension), vectors.dimension**-0.5, np.float32)

    monkeypatch.setattr(vectors.engine, "encode", encode)
    call("create_entities", entities=[person("Ada", "The dog sleeps on the sofa")])
    assert space.vectors is not None  # it knows of Ada now
    assert is_asked.wait(30)  # the observation; the entity waits
    for start in range(0, 300, 50):
        call("create_entities", entities=[person(f"Person {start + each}") for each in range(50)])
    call("delete_entities", entityNames=["Ada"])
    may_go_on.set()

    assert vectors.wait(30)
    assert vectors.of_entities([entity.id for entity in space.graph().entities()])[1] == []
    assert vectors._absent == set()
    assert caplog.records == []


def test_what_fails_again_and_again_is_said_once(
    call: Caller, space: Space, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    vectors = vectors_of(space)
    tries: list[int] = []

    def encode(texts: Sequence[str], *_: object) -> Any:
        tries.append(len(texts))
        raise ValueError("the model has a bad day")

    with monkeypatch.context() as bad_day:
        bad_day.setattr(vectors.engine, "encode", encode)
        for number in range(5):
            call("create_entities", entities=[person(f"Person {number}", f"is number {number}")])
            assert space.vectors is not None
            until = time.monotonic() + 30
            while len(tries) <= number and time.monotonic() < until:
                time.sleep(0.001)

    assert len(tries) >= 5
    assert [record.message for record in caplog.records] == ["embedding failed; searches go by words"]
    vectors_of(space)


def test_a_fresh_vector_is_told_about(pets: Caller, space: Space) -> None:
    told: list[int] = []
    vectors_of(space).on_fresh.append(told.extend)
    pets("add_observations", observations=[{"entityName": "Ada", "contents": ["Learns to swim"]}])
    vectors_of(space)

    assert told == [observation(space, "Learns to swim")]


def random_rows(count: int, dimension: int = 64, seed: int = 1) -> Any:
    rows = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_the_matrix_finds_what_an_exact_search_finds() -> None:
    rows = random_rows(3000)
    matrix = Matrix(64)
    matrix.put(range(1, 3001), rows)
    matrix.drop(range(1, 100))
    for query in random_rows(50) + 0.2 * rows[500:550]:
        query /= np.linalg.norm(query)
        exact = (np.argsort(-(rows[99:] @ query))[:10] + 100).tolist()
        assert [ident for ident, _ in matrix.nearest(query, 10)] == exact


def test_a_search_scans_every_row_and_scores_the_best_exactly() -> None:
    rows = clustered(12_000, 128, 1)
    matrix = Matrix(128)
    matrix.put(range(1, len(rows) + 1), rows)
    exact_rows = rows.astype(np.float16).astype(np.float32)
    found = 0
    for query in clustered(40, 128, 2):
        exact, scores = exact_rows @ query, matrix.scores(query)
        best = np.argsort(-exact)
        assert scores[best[0]] == pytest.approx(exact[best[0]], abs=1e-6)
        assert np.abs(scores - exact).max() < 0.004
        found += len({*best[:10].tolist()} & {*np.argsort(-scores)[:10].tolist()})
    assert found >= 0.995 * 400


def test_a_dropped_row_is_used_again_and_never_found() -> None:
    rows = random_rows(4)
    matrix = Matrix(64)
    matrix.put([7, 8, 9], rows[:3])
    matrix.drop([8])
    assert [ident for ident, _ in matrix.nearest(rows[1], 5)] == [ident for ident, _ in matrix.nearest(rows[1], 2)]
    matrix.put([11], rows[3:])

    assert matrix.rows([7, 8, 9, 11]).tolist() == [0, -1, 2, 1]
    assert matrix.nearest(rows[3], 1)[0][0] == 11
    assert len(matrix) == 3


def test_reflections_have_vectors_too(keep: Caller, sqlite_space: Space, tmp_path: Path) -> None:
    assert vectors_of(sqlite_space).nearest(vectors_of(sqlite_space).engine.encode(["x"], "query"), 3, REFLECTION) == []


# ── what is kept ─────────────────────────────────────────────────────────────────────────────────


def told(space: Space) -> list[str]:
    return [finding.text for finding in space.check()]


def shown(space: Space, table: str) -> dict[int, np.ndarray[Any, Any]]:
    """A documented table of vectors, as SQL shows it."""
    with space.store.guest.reading() as connection:  # type: ignore[attr-defined]
        rows = connection.execute(f"select rowid, embedding from {table} order by rowid").fetchall()
    return {row: np.frombuffer(vector, "<f4") for row, vector in rows}


def test_the_documented_tables_hold_the_same_vectors_for_whoever_asks_with_sql(
    keep: Caller, sqlite_space: Space
) -> None:
    keep("create_entities", entities=[person("Ada", "likes tea"), person("Bob", "likes dogs")])
    keep("add_reflection", target_type="global", content="Two people, two tastes", author="sofia")
    vectors = vectors_of(sqlite_space)
    graph = sqlite_space.graph()

    for table, kind, ids in (
        ("entity_embeddings", ENTITY, list(graph.by_id)),
        ("reflection_embeddings", REFLECTION, list(graph.reflections)),
    ):
        rows = shown(sqlite_space, table)
        assert list(rows) == ids
        assert np.array_equal(np.stack(list(rows.values())), vectors.of(ids, kind)[0])

    keep("delete_entities", entityNames=["Bob"])
    keep("add_observations", observations=[{"entityName": "Ada", "contents": ["Moved to Lyon"]}])
    vectors_of(sqlite_space)
    assert list(shown(sqlite_space, "entity_embeddings")) == [graph.ids["Ada"]]


def test_the_doctor_finds_damaged_vectors_and_they_are_made_anew(keep: Caller, sqlite_space: Space) -> None:
    keep("create_entities", entities=[person("Ada", "likes tea")])
    vectors_of(sqlite_space)
    with sqlite_space.store.guest.writing() as connection:  # type: ignore[attr-defined]
        connection.execute("update text_vectors set vector = zeroblob(1024) where rowid = 1")
        connection.execute("delete from entity_embeddings")
    assert "1 kept vectors are damaged" in told(sqlite_space)[0]

    repaired = [finding.text for finding in sqlite_space.check(repair=True) if finding.repaired]
    assert any("damaged" in text for text in repaired)
    assert any("rows of entity_embeddings were behind" in text for text in repaired)
    assert told(sqlite_space) == []
    assert list(shown(sqlite_space, "entity_embeddings")) == [1]


def test_vectors_of_a_plain_file_lie_beside_it_and_may_be_deleted(tmp_path: Path) -> None:
    space = open_space(tmp_path / "memory.jsonl")
    Caller(space)("create_entities", entities=[person("Ada", "likes tea")])
    vectors_of(space)
    space.close()
    beside = tmp_path / "memory.jsonl-vectors"
    assert beside.exists()
    beside.unlink()

    again = open_space(tmp_path / "memory.jsonl")
    assert nearest(again, "a warm drink") == observation(again, "likes tea")
    again.close()


def test_a_space_that_may_not_write_has_vectors_and_keeps_none(tmp_path: Path) -> None:
    space = open_space(tmp_path / "memory.db")
    Caller(space)("create_entities", entities=[person("Ada", "likes tea")])
    space.close()

    reading = open_space(tmp_path / "memory.db", keeps_usage=False)
    assert nearest(reading, "a warm drink") == observation(reading, "likes tea")
    reading.close()
    again = open_space(tmp_path / "memory.db")
    assert kept(again) == {}
    again.close()


def kept(space: Space) -> dict[str, int]:
    from mcp_memory.stores.vectors import vectors_of as home_of

    return home_of(space.store).stamps()


# ── another model ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder with another model, which nobody has used yet."""
    monkeypatch.setattr("mcp_memory.embedding.places.PLACES", str(tmp_path / "places"))
    monkeypatch.setattr(import_module("mcp_memory.embedding.engine"), "_engines", {})
    folder = tmp_path / "tiny"
    folder.mkdir()
    for name, content in FILES.items():
        (folder / name.rpartition("/")[2]).write_bytes(content)
    return str(folder)


def test_after_a_change_of_model_the_old_vectors_serve_until_the_new_ones_are_there(
    memory_file: Path, tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = open_space(memory_file)
    Caller(space)("create_entities", entities=[person(f"P{n}", f"dog {n} likes tea") for n in range(20)])
    old = vectors_of(space)
    stamp, hers = old.stamp, [seen.id for seen in space.graph()["P3"].observations]
    before, _ = old.of(hers)
    space.close()

    monkeypatch.setattr(Vectors, "nudge", lambda self: None)  # nothing happens behind, until it is let
    space = open_space(memory_file, model=tiny)
    serving = space.vectors
    assert serving is not None and serving.stamp == stamp and space.meaning.progress()[0] == 0
    while serving.step():
        pass
    assert np.array_equal(serving.of(hers)[0], before)
    Caller(space)("add_observations", observations=[{"entityName": "P3", "contents": ["a cat has money"]}])

    monkeypatch.undo()
    coming = space.meaning.changeover()._coming  # type: ignore[union-attr]
    assert coming is not None
    while coming.step():
        pass
    vectors = space.vectors
    assert vectors is coming and vectors.stamp != stamp
    assert vectors.dimension == DIMENSION and vectors.pending() == 0
    done, everything = space.meaning.progress()
    assert done == everything == 41
    until = time.monotonic() + 10
    while len(kept(space)) > 1 and time.monotonic() < until:
        time.sleep(0.02)
    assert list(kept(space)) == [vectors.stamp]
    assert told(space) == []
    space.close()


def test_who_searches_while_everything_is_embedded_anew_is_told_how_far_it_is_and_when_it_is_over(
    tmp_path: Path, tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = open_space(tmp_path / "memory.db")
    Caller(space)("create_entities", entities=[person(f"P{n}", f"dog {n} likes tea") for n in range(5)])
    vectors_of(space)
    space.close()
    monkeypatch.setattr(Vectors, "nudge", lambda self: None)  # nothing happens behind, until it is let
    space = open_space(tmp_path / "memory.db", model=tiny)
    client = Client(tools=catalog(), space=space)

    def search(**meta: Any) -> list[tuple[str, str]]:
        *said, reply = client.send("tools/call", name="search_semantic", arguments={"query": "tea"}, _meta=meta)
        assert reply["result"]["structuredContent"]["results"]
        return [(one["params"]["level"], one["params"]["data"]) for one in said]

    halfway = "embedding everything with another model: 0 of 10 texts; the former serves meanwhile"
    assert search() == [("info", halfway)]
    assert search(**META) == []
    monkeypatch.undo()
    coming = space.meaning.changeover()._coming  # type: ignore[union-attr]
    while coming.step():  # type: ignore[union-attr]
        pass
    done = ("notice", "everything is embedded with the new model, which serves from now on")
    assert search(**META, **{"io.modelcontextprotocol/logLevel": "info"}) == [done]
    assert search() == []
    assert told(space) == []
    space.close()


def test_what_the_old_model_was_still_at_when_it_was_replaced_does_not_stay(
    tmp_path: Path, tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = open_space(tmp_path / "memory.db")
    Caller(space)("create_entities", entities=[person(f"P{n}", f"dog {n} likes tea") for n in range(5)])
    vectors_of(space)
    space.close()
    nudge = Vectors.nudge
    monkeypatch.setattr(Vectors, "nudge", lambda self: None)  # nothing happens behind, until it is let
    space = open_space(tmp_path / "memory.db", model=tiny)
    old, coming = space.vectors, space.meaning.changeover()._coming  # type: ignore[union-attr]
    assert old is not None and coming is not None
    Caller(space)("add_observations", observations=[{"entityName": "P3", "contents": ["a cat has money"]}])
    is_at_it, may_go_on = threading.Event(), threading.Event()
    encode = old.engine.encode

    def slowly(texts: Sequence[str]) -> Any:
        is_at_it.set()
        assert may_go_on.wait(30)
        return encode(texts)

    monkeypatch.setattr(old.engine, "encode", slowly)
    nudge(old)
    assert is_at_it.wait(30)
    while coming.step():
        pass
    has_changed = space.vectors is coming
    assert has_changed
    nudge(coming)
    time.sleep(0.2)
    may_go_on.set()
    until = time.monotonic() + 30
    while len(kept(space)) > 1 and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(0.2)
    assert list(kept(space)) == [coming.stamp]
    space.close()


def test_a_change_of_model_tells_how_far_it_is(
    tmp_path: Path,
    tiny: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "memory.db"
    space = open_space(file)
    Caller(space)("create_entities", entities=[person(f"P{n}", f"dog {n} likes tea") for n in range(20)])
    vectors_of(space)
    space.close()
    monkeypatch.setattr("mcp_memory.search.vectors.LOT", 4)
    monkeypatch.setattr(Vectors, "nudge", lambda self: None)  # nothing happens behind, until it is let
    space = open_space(file, model=tiny)
    call, serving = Caller(space), space.vectors
    assert serving is not None
    while serving.step():
        pass

    assert call("search_semantic", query="tea")["reembedding"] == {"embedded": 0, "of": 40}
    coming = space.meaning.changeover()._coming  # type: ignore[union-attr]
    assert coming is not None
    while coming.progress()[0] < 20:
        coming.step()
    told = call("search_semantic", query="tea")
    assert (told["status"], told["reembedding"]) == ("found", {"embedded": 20, "of": 40})
    assert main(["-f", str(file), "stats"]) == 0
    assert "texts with a vector" in (printed := capsys.readouterr().out)
    assert "universal-sentence-encoder-multilingual-3 40, tiny-" in printed and " 20\n" in printed
    while coming.step():
        pass
    assert "reembedding" not in call("search_semantic", query="tea")
    lines = [record.getMessage() for record in caplog.records if "of 40 texts" in record.getMessage()]
    assert len(lines) == 10 and "4 of 40" in lines[0] and "40 of 40" in lines[-1]
    space.close()


@pytest.mark.parametrize("is_same", [True, False])
def test_a_model_of_ones_own_serves_on_in_another_process_as_long_as_its_weights_are_the_same(
    tmp_path: Path, tiny: str, monkeypatch: pytest.MonkeyPatch, is_same: bool
) -> None:
    space = open_space(tmp_path / "memory.db", model=tiny)
    Caller(space)("create_entities", entities=[person("Ada", "likes tea")])
    old = vectors_of(space).stamp
    space.close()
    monkeypatch.setattr(import_module("mcp_memory.embedding.engine"), "_engines", {})  # as in another process
    if not is_same:
        weights = Path(tiny) / "model.onnx"
        weights.write_bytes(weights.read_bytes() + b"\0")
    monkeypatch.setattr(Vectors, "nudge", lambda self: None)  # nothing happens behind

    space = open_space(tmp_path / "memory.db")
    serving = space.vectors
    assert serving is not None and (serving.stamp == old) is is_same
    space.close()


def test_no_memory_file_chooses_which_files_are_read_as_a_model(tmp_path: Path, tiny: str) -> None:
    model = model_in(tiny)

    assert engine_for(f"{model.name}/1") is None  # until somebody has used it here
    assert engine_for(f"../{Path(tiny).name}/1") is engine_for(f"{tiny}/1") is None


def test_without_the_old_model_its_vectors_are_not_mixed_with_the_new_ones(
    tmp_path: Path, tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = open_space(tmp_path / "memory.db", model=tiny)
    Caller(space)("create_entities", entities=[person("Ada", "likes tea")])
    vectors_of(space)
    space.close()
    monkeypatch.setattr(import_module("mcp_memory.embedding.engine"), "_engines", {})
    shutil.rmtree(tiny)

    space = open_space(tmp_path / "memory.db")
    assert nearest(space, "a warm drink") == observation(space, "likes tea")
    assert all(len(row) == 512 for row in shown(space, "entity_embeddings").values())
    assert told(space) == []
    space.close()


def test_a_server_embeds_behind_writes_before_anybody_searches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_memory.meaning.QUIET_SECONDS", 0.01)
    space = open_space(tmp_path / "memory.db")
    space.meaning.follows_writes = True
    Caller(space)("create_entities", entities=[person("Ada", "likes tea")])
    until = time.monotonic() + 20
    while not kept(space) and time.monotonic() < until:
        time.sleep(0.05)

    assert sum(kept(space).values()) >= 1
    space.close()


# ── large spaces ─────────────────────────────────────────────────────────────────────────────────


def test_a_large_space_maps_its_rows_and_looks_up_only_what_changed(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_memory.search.vectors.MAPPED_FROM", 10)
    mapped = database.with_name("memory.db-vectormap")
    space = open_space(database)
    call = Caller(space)
    call("create_entities", entities=[person(f"P{n}", f"dog {n} likes tea", f"he has {n} cats") for n in range(10)])
    vectors = vectors_of(space)
    vectors._tidy()
    before = {seen.id: vectors.of([seen.id])[0] for entity in space.graph().entities() for seen in entity.active()}
    call("delete_observations", deletions=[{"entityName": "P1", "observations": ["dog 1 likes tea"]}])
    call("delete_entities", entityNames=["P2"])
    space.close()
    assert mapped.exists()

    looked_up: list[int] = []

    def find(self: KeptVectors, stamp: str, keys: list[int]) -> dict[int, bytes]:
        looked_up.extend(keys)
        return {}

    monkeypatch.setattr(KeptVectors, "find", find)
    space = open_space(database)
    changeover = space.meaning.changeover()
    assert changeover is not None
    monkeypatch.setattr(changeover.serving, "nudge", lambda: None)
    with space.reading() as graph:
        changeover.refresh(graph)
        ids = [seen.id for entity in graph.entities() for seen in entity.active()]
    rows, missing = changeover.serving.of(ids)
    assert missing == [] and looked_up == []
    assert np.array_equal(rows, np.concatenate([before[ident] for ident in ids]))
    assert len(changeover.serving._wanted[OBSERVATION]) == len(ids) == 17
    assert [ident for ident, _ in changeover.serving.nearest(rows[3], 1)] == [ids[3]]
    monkeypatch.undo()
    call = Caller(space)
    call("add_observations", observations=[{"entityName": "P3", "contents": ["a bank by the river"]}])
    assert nearest(space, "where money is kept") == observation(space, "a bank by the river")
    space.close()


@pytest.mark.parametrize("damage", [b"", b"garbage", b"MCPMEM vectors 1\n{}"])
def test_a_map_that_is_not_whole_is_passed_over(database: Path, damage: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    space = open_space(database)
    Caller(space)("create_entities", entities=[person("Ada", "likes tea")])
    vectors_of(space)
    space.close()
    database.with_name("memory.db-vectormap").write_bytes(damage)

    space = open_space(database)
    assert nearest(space, "a warm drink") == observation(space, "likes tea")
    assert told(space) == []
    space.close()


def clustered(count: int, dimension: int, seed: int) -> Any:
    """Texts come in topics, and so do their vectors."""
    dice = np.random.default_rng(seed)
    topics = np.random.default_rng(0).normal(size=(200, dimension))
    rows = topics[dice.integers(0, 200, count)] + dice.normal(size=(count, dimension))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float32)


def test_in_a_very_large_matrix_the_signs_pass_over_nothing_that_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = clustered(12_000, 128, 1)
    matrix = Matrix(128)
    matrix.put(range(1, len(rows) + 1), rows)
    monkeypatch.setattr("mcp_memory.search.matrix.MANY_ROWS", 10_000)
    monkeypatch.setattr("mcp_memory.search.matrix.PROMISING", 2000)
    matrix.drop(range(1, 100))
    matrix.put([5], rows[4:5])
    rows[:4], rows[5:99] = 0, 0
    found = 0
    for query in clustered(40, 128, 2):
        exact = set((np.argsort(-(rows @ query))[:10] + 1).tolist())
        found += len(exact & {ident for ident, _ in matrix.nearest(query, 10)})
    assert found >= 0.998 * 400


def test_where_everything_is_far_away_the_signs_are_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two thousand directions none is near the query's: which are the nearest, their signs do not tell."""
    rows, queries = random_rows(12_000, 128, seed=1), random_rows(40, 128, seed=2)
    matrix = Matrix(128)
    matrix.put(range(1, len(rows) + 1), rows)
    monkeypatch.setattr("mcp_memory.search.matrix.MANY_ROWS", 10_000)
    monkeypatch.setattr("mcp_memory.search.matrix.PROMISING", 2000)
    exact = [set((np.argsort(-(rows @ query))[:10] + 1).tolist()) for query in queries]

    def found() -> int:
        nearest = [{ident for ident, _ in matrix.nearest(query, 10)} for query in queries]
        return sum(len(one & other) for one, other in zip(exact, nearest, strict=True))

    assert found() >= 0.998 * 400
    monkeypatch.setattr("mcp_memory.search.matrix.SURE", -100.0)
    assert found() < 0.98 * 400


@pytest.mark.parametrize("ident", [1, 300, 1 << 29])
def test_any_number_may_be_an_id(ident: int) -> None:
    matrix = Matrix(64)
    row = random_rows(1)
    matrix.put([ident], row, [7], [9])
    assert matrix.rows([ident, ident + 1]).tolist() == [0, -1]
    assert ident in matrix and matrix.of_owners([9]) == ([ident], [7], [9])
    matrix.drop([ident])
    assert matrix.rows([ident]).tolist() == [-1] and len(matrix) == 0
