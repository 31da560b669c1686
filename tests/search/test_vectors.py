"""What texts mean follows the facts: every change, every store, every restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mcp_memory.assembly import open_space
from mcp_memory.search.matrix import Matrix
from mcp_memory.search.vectors import ENTITY, OBSERVATION, REFLECTION, Vectors, windowed
from mcp_memory.space import Space
from tests.conftest import Caller, link, person


def vectors_of(space: Space) -> Vectors:
    """The vectors of a space once every text has one."""
    vectors = space.vectors
    assert vectors is not None
    with space.reading() as graph:
        vectors.refresh(graph)
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


def test_vectors_of_both_runs_are_the_same_and_the_second_embeds_nothing(pets: Caller, space: Space) -> None:
    ids = [seen.id for entity in space.graph().entities() for seen in entity.active()]
    first, _ = vectors_of(space).of(ids)
    space.close()

    again = open_space(space.store.path)  # type: ignore[attr-defined]
    vectors = again.vectors
    assert vectors is not None
    vectors._encoded = None  # type: ignore[assignment, method-assign]  # embedding anything would fail
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


def test_a_fresh_vector_is_told_about(pets: Caller, space: Space) -> None:
    told: list[int] = []
    vectors_of(space).on_fresh.append(told.extend)
    pets("add_observations", observations=[{"entityName": "Ada", "contents": ["Learns to swim"]}])
    vectors_of(space)

    assert told == [observation(space, "Learns to swim")]


def test_a_window_joins_neighbours_of_one_entity_and_passes_over_long_texts() -> None:
    similarities = np.array([0.0, 0.9, 0.0, 0.0, 0.0, np.nan], np.float32)
    owners = np.array([1, 1, 1, 2, 2, 2])
    nobody = np.zeros(6, bool)
    seen = windowed(similarities, owners, nobody)

    assert seen[2] > 0 and seen[0] > 0
    assert seen[3] == 0 and seen[4] == 0
    assert np.isnan(seen[5])
    alone = windowed(similarities, owners, np.array([False, True, False, False, False, False]))
    assert alone[0] == alone[2] == 0
    assert alone[1] == pytest.approx(0.9)


def random_rows(count: int, dimension: int = 64) -> Any:
    rows = np.random.default_rng(1).normal(size=(count, dimension)).astype(np.float32)
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
