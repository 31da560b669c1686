"""Every check of the project, in an environment of its own: `python3 scripts/check.py`.

Without arguments all tests run, on every core. Arguments go to pytest, which then takes one core, as a
debugger likes it: `python3 scripts/check.py tests/wire -x`; `-n auto --dist loadfile` asks for all of them."""

import subprocess
import sys

from environment import CHECKOUT, Environment

CHECKS = (
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("mypy",),
)
# A file stays on one core: its tests share what was made for them (docs/decisions/0019-pytest-xdist.md).
ALL_TESTS = ("-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder")


def main() -> int:
    tools = Environment(".venv-dev")
    tools.prepare(CHECKOUT / "requirements" / "dev.txt")
    tools.install("--no-deps", "--no-build-isolation", "-e", CHECKOUT)
    failed = [check for check in CHECKS if not passes(tools, check)]
    for check in failed:
        print(f"FAILED: {' '.join(check)}", flush=True)
    # Last, so that the last line is pytest's count.
    tested = passes(tools, ("pytest", *(sys.argv[1:] or ALL_TESTS)))
    return 0 if tested and not failed else 1


def passes(tools: Environment, check: tuple[str, ...]) -> bool:
    print("$", *check, flush=True)
    return subprocess.run([str(tools.python), "-m", *check], cwd=CHECKOUT, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
