"""Many clients at once for half a minute: `.venv-dev/bin/python bench/clients.py [--seconds 30] [--clients 32]`.

Clients over HTTP, then over TCP, then both at the same time: two servers on one file. Each writes, reads and
checks what it reads, as fast as it can. Ends with an error where an answer was wrong or a write is missing;
prints throughput, waiting times and the servers' memory over time, which should stay where it is."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.wire.network import Server, real, running
from tests.wire.talkers import Outcome, Talker

LOOKS = 6  # at the memory of the servers


async def talk(talkers: list[Talker], servers: dict[str, Server], seconds: float) -> list[list[float]]:
    """Let all of them talk; what each server took, at even intervals."""
    until = time.monotonic() + seconds
    talks = [asyncio.create_task(talker.talk(servers[talker.transport].port, until)) for talker in talkers]
    taken = []
    for _ in range(LOOKS):
        await asyncio.sleep(seconds / LOOKS)
        taken.append([server.resident_mb() for server in servers.values()])
    await asyncio.gather(*talks)
    return taken


def run(transports: tuple[str, ...], clients: int, seconds: float, file: Path) -> bool:
    """One measurement; was everything as it should be?"""
    talkers = [Talker(number, transport, transport) for transport in transports for number in range(clients)]
    with ExitStack() as stack:
        servers = {each: stack.enter_context(running(real(file, each))) for each in transports}
        taken = asyncio.run(talk(talkers, servers, seconds))
    outcome = Outcome(talkers, file)
    print(f"{clients} x {' + '.join(transports):<12}{outcome.told(seconds)}")
    for number, transport in enumerate(transports):
        print(f"  memory of the {transport} server, MB: {'  '.join(f'{look[number]:.1f}' for look in taken)}")
    lost = {name for name, count in outcome.expected.items() if outcome.kept.get(name) != count}
    extra = outcome.kept.keys() - outcome.expected.keys()
    print(f"  {len(outcome.times):,} calls answered, {len(lost)} facts missing, {len(extra)} that nobody wrote")
    for finding in outcome.findings:
        print(f"  the check-up found: {finding}")
    return not (lost or extra or outcome.findings)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--clients", type=int, default=32, help="of each transport")
    parser.add_argument("--suffix", default=".db", help="of the memory file, which picks the store")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kinds = (("http",), ("tcp",), ("http", "tcp"))
        files = [Path(folder, f"{number}{chosen.suffix}") for number in range(len(kinds))]
        good = [run(kind, chosen.clients, chosen.seconds, file) for kind, file in zip(kinds, files, strict=True)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
