"""Our server in bad weather: `python -m mcp_memory.torture.victim OPTIONS -- ARGUMENTS OF THE SERVER`.

The only way in which a fault gets into the program: whoever starts the server itself never comes by here."""

from __future__ import annotations

import sys

import msgspec

from mcp_memory.torture.calls import Calls
from mcp_memory.torture.platter import Platter
from mcp_memory.torture.weather import Trouble


class Fate(msgspec.Struct, frozen=True):
    """What befalls this victim: the first argument, as JSON."""

    folder: str  # of the memory file
    weather: str  # the file that tells
    seed: int = 0
    platter: str | None = None  # where what is flushed is remembered


_kept: list[object] = []  # a file system that nobody holds is taken out again


def main(arguments: list[str]) -> int:
    fate = msgspec.json.decode(arguments[0], type=Fate)
    trouble = Trouble(fate.weather, fate.seed)
    platter = Platter(fate.folder, fate.platter) if fate.platter is not None else None
    from mcp_memory.torture.disk import TroubledDisk

    _kept.append(TroubledDisk(trouble, platter))
    # SQLite is told of every failed write, Python of the first: the others are no news.
    sys.unraisablehook = lambda _: None
    Calls(trouble, fate.folder, platter).take_the_place()
    from mcp_memory.server import main as serve

    return serve(arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
