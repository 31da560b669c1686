"""A long life: `.venv-dev/bin/python bench/soak.py [CALLS]` (200,000 by default, some minutes).

One server over stdio, calls of every kind on a memory that stays as large as it is: memory in use, open handles
and threads must stay flat, the WAL bounded, the feed bounded by the retention, and the doctor must find nothing.
The database gets all the calls, the plain files a tenth. The exit code says whether all of that held."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.soaking import Soak

CALLS = 200_000
SECONDS = 3600.0  # for each file; what was done by then is told


def main(calls: int) -> int:
    wrong = 0
    for name, share in (("memory.db", 1), ("memory.jsonl", 10), ("memory.mcpmem", 10)):
        with tempfile.TemporaryDirectory() as folder:
            soak = Soak(Path(folder) / name)
            started = time.monotonic()
            try:
                soak.run(calls // share, seconds=SECONDS)
                print(f"{name}: {soak.done:,} calls in {time.monotonic() - started:.0f} s")
                soak.print()
                found = soak.trouble() + soak.end()
                if soak.done < calls // share:
                    found.append(
                        f"stopped after {soak.done:,} of {calls // share:,} calls, as {SECONDS:,.0f} s were over"
                    )
            finally:
                soak.kill()
        print(f"{name}: {'; '.join(found) or 'nothing grew, and the doctor found nothing'}", flush=True)
        wrong += len(found)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else CALLS))
