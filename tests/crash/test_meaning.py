"""Vectors are made behind the replies, and nothing that happens meanwhile loses one: they follow from the texts."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from mcp_memory.assembly import open_space
from mcp_memory.embedding.models import EMBEDDED
from tests.crash.harness import Server
from tests.embedding.hub import DIMENSION, put_tiny

WORDS = "harbour kettle orchard violin granite lantern meadow saddle thimble walnut".split()
TEXTS = 600  # a few seconds of the bundled model
SOON = 150.0


def texts(count: int = TEXTS) -> list[str]:
    return [
        f"the {WORDS[n % 10]} near the {WORDS[n // 10 % 10]} was seen by {n} people in the year {n}"
        for n in range(count)
    ]


def remember(server: Server, said: list[str]) -> None:
    """Thirty observations to an entity."""
    entities = [
        {"name": f"note {start}", "entityType": "Note", "observations": said[start : start + 30]}
        for start in range(0, len(said), 30)
    ]
    server.call("create_entities", entities=entities)


def kept(file: Path) -> dict[str, int]:
    """How many vectors of which model are in the file."""
    with closing(apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        connection.set_busy_timeout(5000)
        try:
            return dict(
                connection.execute(
                    "select stamp, count(model_id) from vector_models left join text_vectors on model_id = id"
                    " group by id"
                )
            )
        except apsw.SQLError:
            return {}


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + SOON
    while not what():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


def everything_kept(file: Path, count: int, model: str = EMBEDDED.name) -> bool:
    return sum(number for stamp, number in kept(file).items() if stamp.startswith(model)) >= count


def test_what_a_killed_server_had_not_embedded_is_embedded_by_the_next_one_by_itself(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    entities = TEXTS // 30
    with Server(file) as server:
        remember(server, texts())
        until(lambda: sum(kept(file).values()) > 0)
    began = sum(kept(file).values())
    assert 0 < began < TEXTS  # it was killed in the middle

    with Server(file) as server:
        server.call("open_nodes", names=["note 0"])  # nobody searches and nobody writes
        until(lambda: everything_kept(file, TEXTS + entities))
        found = server.call("search_semantic", query="how many people saw the violin near the walnut", limit=3)
    assert found["status"] == "found"

    space = open_space(file)
    assert [finding.text for finding in space.check()] == []
    vectors = space.vectors
    assert vectors is not None and vectors.wait(SOON)
    assert vectors.progress() == (TEXTS + entities, TEXTS + entities)
    space.close()


def test_calls_are_answered_while_a_large_import_is_embedded(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    with Server(file) as server:
        remember(server, texts())
        began = time.monotonic()
        assert server.call("search_semantic", query="who saw the lantern near the saddle", limit=3)["results"]
        assert time.monotonic() - began < 30  # it waits for its model and a moment more, not for the import
        took: list[float] = []
        while sum(kept(file).values()) < TEXTS and len(took) < 200:
            began, text = time.monotonic(), f"seen again: {len(took)}"
            server.call("add_observations", observations=[{"entityName": "note 0", "contents": [text]}])
            assert server.call("open_nodes", names=["note 0"])["entities"][0]["observations"][-1] == text
            took.append(time.monotonic() - began)
        # One lot of texts takes most of a second: were it encoded under a lock, every call would wait for it.
        assert len(took) > 10
        assert sorted(took)[len(took) // 2] < 0.3

        until(lambda: everything_kept(file, TEXTS + len(took) + TEXTS // 30))
        server.call("add_observations", observations=[{"entityName": "note 30", "contents": ["Her aunt grows tulips"]}])
        found = server.call("search_semantic", query="flores de la tía", limit=3)
    # What was written just now is waited for.
    assert found["results"][0]["name"] == "note 30"
    assert found["results"][0]["matches"][0]["observation"] == "Her aunt grows tulips"


def rows(file: Path, table: str) -> list[int]:
    """How many numbers the vectors of a documented table have."""
    space = open_space(file, keeps_usage=False)
    with space.store.guest.reading() as connection:  # type: ignore[attr-defined]
        found = [len(vector) // 4 for (vector,) in connection.execute(f"select embedding from {table}")]
    space.close()
    return found


def metadata(file: Path, key: str) -> Any:
    with closing(apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return connection.execute("select value from db_metadata where key = ?", (key,)).get


@pytest.mark.parametrize("is_old_model_still_there", [True, False])
def test_a_server_with_another_model_embeds_everything_anew_and_never_mixes(
    tmp_path: Path, is_old_model_still_there: bool
) -> None:
    file = tmp_path / "memory.db"
    old = put_tiny(tmp_path / "old")
    said = [f"the {animal} likes {drink} number {n}" for n in range(100) for animal, drink in [("dog", "tea")]]
    with Server(file, "--model", str(old)) as server:
        remember(server, said)
        until(lambda: everything_kept(file, 104, "old-"))
    assert set(rows(file, "entity_embeddings")) == {DIMENSION}
    assert metadata(file, "embedding_model").startswith("old-")
    if not is_old_model_still_there:
        shutil.rmtree(old)

    with Server(file) as server:
        if is_old_model_still_there:  # its vectors serve at once, and go on until the new ones are there
            assert server.call("search_semantic", query="the dog likes tea number 7")["status"] == "found"
        # An old vector has 16 numbers and a new one 512: comparing them would fail, and be told.
        until(lambda: server.call("search_semantic", query="the dog likes tea number 7")["results"] != [])
        until(lambda: list(kept(file)) == [f"{EMBEDDED.name}/1"] and everything_kept(file, 104))
        found = server.call("search_semantic", query="¿a quién le gusta el té?", limit=3)
        assert found["results"]
        server.close()
        assert "failed" not in server.stderr()
    assert set(rows(file, "entity_embeddings")) == {EMBEDDED.dimension}
    assert metadata(file, "embedding_model").startswith(EMBEDDED.name)
