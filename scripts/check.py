"""Every check of the project, in an environment of its own: `python3 scripts/check.py`.

Arguments go to pytest: `python3 scripts/check.py tests/wire -x`."""

import subprocess
import sys

from environment import CHECKOUT, Environment

CHECKS = (
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("mypy",),
)


def main() -> int:
    tools = Environment(".venv-dev")
    tools.prepare(CHECKOUT / "requirements" / "dev.txt")
    tools.install("--no-deps", "--no-build-isolation", "-e", CHECKOUT)
    failed = [check for check in CHECKS if not passes(tools, check)]
    for check in failed:
        print(f"FAILED: {' '.join(check)}", flush=True)
    # Last, so that the last line is pytest's count.
    tested = passes(tools, ("pytest", *sys.argv[1:]))
    return 0 if tested and not failed else 1


def passes(tools: Environment, check: tuple[str, ...]) -> bool:
    print("$", *check, flush=True)
    return subprocess.run([str(tools.python), "-m", *check], cwd=CHECKOUT, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
