"""A full disk: what cannot be kept is refused in plain words, nothing is damaged, and room is all it takes to go on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import STORES
from tests.crash.harness import Refused, Server, names_in
from tests.crash.places import Disk, small_disk

TEXT = "a text of some length " * 40


class Allowance:
    """No disk can be filled, so the process may not write beyond what its files have now."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server = server
        self.folder = folder

    def fill(self) -> None:
        self._allow(max(file.stat().st_size for file in self.folder.iterdir()))

    def empty(self) -> None:
        self._allow(-1)

    def _allow(self, most: int) -> None:
        import resource

        resource.prlimit(self.server.process.pid, resource.RLIMIT_FSIZE, (most, -1))


def grow(server: Server, prefix: str, most: int = 10_000) -> tuple[list[str], Refused | None]:
    """Write until it is refused: what was acknowledged, and the refusal."""
    names: list[str] = []
    for number in range(most):
        name = f"{prefix}-{number}"
        try:
            server.call("create_entities", entities=[{"name": name, "observations": [f"{TEXT}{i}" for i in range(20)]}])
        except Refused as refused:
            return names, refused
        names.append(name)
    return names, None


@pytest.fixture(params=["a small disk", "an allowance"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, Disk | None]]:
    """Where to keep the memory, and its disk; none where no disk can be made, or the other way is to be tested."""
    folder = tmp_path / "disk"
    with small_disk(folder) as disk:
        yield folder, disk if request.param == "a small disk" else None


@pytest.mark.parametrize("name", STORES)
def test_a_full_disk_refuses_writes_serves_reads_and_goes_on_when_there_is_room(
    name: str, folder: tuple[Path, Disk | None]
) -> None:
    place, disk = folder
    path = place / name
    with Server(path) as server:
        space = disk or Allowance(server, place)
        before, _ = grow(server, "before", 20)
        space.fill()
        during, refused = grow(server, "during")
        assert refused is not None and refused.retryable
        assert "nothing was changed" in str(refused).lower()
        assert before[0] in [one["name"] for one in server.call("open_nodes", names=[before[0]])["entities"]]
        with pytest.raises(Refused, match="not found"):
            server.call("get_entity", name=f"during-{len(during)}")

        space.empty()
        after, refused = grow(server, "after", 20)
        assert refused is None
        assert server.close()[0] == 0

    assert names_in(path) == before + during + after


@pytest.mark.parametrize("name", STORES)
def test_a_server_that_starts_on_a_full_disk_serves_what_is_there(name: str, folder: tuple[Path, Disk | None]) -> None:
    place, disk = folder
    path = place / name
    with Server(path) as server:
        before, _ = grow(server, "before", 20)
        server.kill()
    with Server(path) as server:
        space = disk or Allowance(server, place)
        space.fill()
        assert len(server.call("read_graph")["entities"]) == len(before)
        during, refused = grow(server, "during")
        assert refused is not None
        assert len(server.call("read_graph")["entities"]) == len(before) + len(during)
        space.empty()
        after, refused = grow(server, "after", 20)
        assert refused is None

    assert names_in(path) == before + during + after
