"""Who is tortured: our server over one of its stores, or any other that speaks MCP on standard input and output.

A target starts a process, tells which faults it can be made to meet, and takes a fresh look at what is kept."""

from __future__ import annotations

import os
import shlex
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple, Protocol

import msgspec

from mcp_memory.assembly import open_space
from mcp_memory.settings import BadSetting
from mcp_memory.stores.store import HEALED, StoreFault
from mcp_memory.torture.client import Gone, Refused, Server, surroundings
from mcp_memory.torture.deeds import Census
from mcp_memory.torture.platter import Platter
from mcp_memory.torture.victim import Fate
from mcp_memory.torture.weather import FULL, STRIKING, Weather

KILL, POWER = "kill", "power"
FAULTS = (KILL, *STRIKING, POWER)
# Several targets may be tortured at once, and SQLite has one file system for all of this process.
ONE_AT_A_TIME = threading.Lock()
HISTORY_CALLS = "60"  # so that `compact` lets go of some
FILES = {"sqlite": "memory.db", "journal": "memory.mcpmem", "jsonl": "memory.jsonl"}


class Place:
    """The folders of one memory that is tortured: itself, and what stands beside it."""

    def __init__(self, folder: str, file: str) -> None:
        self.folder = folder
        self.memory = os.path.join(folder, "memory")
        self.file = os.path.join(self.memory, file)
        self.weather = os.path.join(folder, "weather.json")
        self.settings = os.path.join(folder, "settings.toml")
        self.platter: Platter | None = None
        os.makedirs(self.memory)
        Weather().write(self.weather)
        with open(self.settings, "wb"):
            pass  # empty: nobody's own settings count here

    def begin_platter(self) -> None:
        """From now on remember what is flushed. Nobody may be at work."""
        place = os.path.join(self.folder, "platter")
        number = sum(name.startswith("platter") for name in os.listdir(self.folder))
        self.platter = Platter(self.memory, f"{place}-{number}")
        self.platter.take_all()


class Look(NamedTuple):
    """What a fresh look found: facts and findings, or why it could not be read."""

    census: Census | None
    findings: list[str]
    trouble: str = ""


class Target(Protocol):
    name: str
    file: str  # how a memory file is named
    faults: tuple[str, ...]  # that it can be made to meet
    is_strict: bool  # what was acknowledged survives a power cut
    has_doctor: bool
    is_ours: bool  # it has more than the official tools

    def start(self, place: Place, seed: int) -> Server:
        """One more process on the file of this place."""

    def meet(self, server: Server) -> None:
        """One of its processes was greeted: what does it call itself?"""

    def set_weather(self, place: Place, servers: Iterable[Server], weather: Weather) -> None:
        """Let this befall them from now on."""

    def look(self, place: Place) -> Look:
        """Open the file afresh."""


class Ours:
    """Our server, over one of its stores."""

    has_doctor = is_ours = True
    faults: tuple[str, ...] = FAULTS
    module = "mcp_memory.torture.victim"

    def __init__(self, store: str, durability: str) -> None:
        self.name = store if durability == "normal" else f"{store}, {durability}"
        self.file = FILES[store]
        self.durability = durability
        self.is_strict = durability == "sync"

    def start(self, place: Place, seed: int) -> Server:
        platter = place.platter.place if place.platter is not None else None
        fate = Fate(place.memory, place.weather, seed, platter)
        told = msgspec.json.encode(fate).decode()
        options = ["--memory-file", place.file, "--settings", place.settings, "--durability", self.durability]
        options += ["--model", "none", "--history-calls", HISTORY_CALLS]
        command = [sys.executable, "-m", self.module, told, *options]
        # A program that runs from a checkout or an archive finds itself there again.
        return Server(command, surroundings(PYTHONPATH=os.pathsep.join(filter(None, sys.path))))

    def meet(self, server: Server) -> None:
        pass  # we know

    def set_weather(self, place: Place, servers: Iterable[Server], weather: Weather) -> None:
        weather.write(place.weather)

    def look(self, place: Place) -> Look:
        with ONE_AT_A_TIME, _remembered(place):
            return self._look(place)

    def _look(self, place: Place) -> Look:
        space = open_space(place.file, model="none")
        try:
            census = Census.of_graph(space.graph())
            # The end of a journal may be in pieces: that is what the power does, and no promise is broken by it.
            return Look(census, [finding.text for finding in space.check() if finding.remedy != HEALED])
        except StoreFault as fault:
            return Look(None, [], str(fault))
        finally:
            space.close()


@contextmanager
def _remembered(place: Place) -> Iterator[None]:
    """Whoever looks may be the last to close a database, and flushes it then: the platter must know."""
    if place.platter is None:
        yield
        return
    from mcp_memory.torture.disk import TroubledDisk
    from mcp_memory.torture.weather import Trouble

    disk = TroubledDisk(Trouble(place.weather, 0), place.platter)
    try:
        yield
    finally:
        disk.unregister()


class Peer:
    """Any server, by its command line. It is asked itself what it kept, in a new process."""

    is_strict = has_doctor = is_ours = False

    def __init__(self, command: str, variable: str, file: str) -> None:
        self.name = "the other server"
        self.file = file
        self.faults: tuple[str, ...] = (KILL, FULL) if sys.platform == "linux" else (KILL,)
        self._command = words(command)
        self._variable = variable

    def start(self, place: Place, seed: int) -> Server:
        command = [word.replace("{file}", place.file) for word in self._command]
        try:
            return Server(command, surroundings(**({self._variable: place.file} if self._variable else {})))
        except OSError as error:
            raise BadSetting(f"The other server cannot be started: {error}") from error

    def set_weather(self, place: Place, servers: Iterable[Server], weather: Weather) -> None:
        """A full disk, as the system does it to any process: its files may not grow."""
        if sys.platform == "linux":
            import resource

            sizes = []
            for entry in os.scandir(place.memory):
                with suppress(FileNotFoundError):  # a file that the server replaces another with
                    sizes.append(entry.stat().st_size)
            most = max(sizes, default=0) if weather.full else resource.RLIM_INFINITY
            for server in servers:
                with suppress(ProcessLookupError):
                    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

    def look(self, place: Place) -> Look:
        with self.start(place, 0) as server:
            try:
                return Look(Census.of_answer(server.call("read_graph")), [])
            except (Refused, Gone, TimeoutError, LookupError, TypeError) as trouble:
                return Look(None, [], f"read_graph: {trouble}"[:500])

    def meet(self, server: Server) -> None:
        try:
            about = server.about()
        except (Refused, Gone, TimeoutError) as trouble:
            raise BadSetting(f"The other server does not answer initialize: {str(trouble)[-500:]}") from trouble
        self.name = " ".join(str(about[part]) for part in ("name", "version") if part in about) or self.name


def words(command: str) -> list[str]:
    """A command line as its words; on Windows the backslash is only a part of a path."""
    if os.name != "nt":
        return shlex.split(command)
    return [word.strip('"') for word in shlex.split(command, posix=False)]
