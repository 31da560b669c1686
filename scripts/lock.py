"""Write requirements/*.txt anew from pyproject.toml: `python3 scripts/lock.py`.

The locks hold for every Python from 3.11 on Linux, macOS and Windows, with the hash of each file.
Arguments go to uv: `--upgrade` takes the newest of everything."""

import sys

from environment import CHECKOUT, Environment, run

LOCKS = {"run": (), "dev": ("--group", "dev")}
OPTIONS = (
    *("--universal", "--python-version", "3.11", "--generate-hashes"),
    *("--no-annotate", "--no-emit-index-url", "--no-emit-find-links", "--quiet"),
    *("--custom-compile-command", "python3 scripts/lock.py"),
)

locker = Environment(".venv-lock")
locker.prepare(CHECKOUT / "requirements" / "run.txt")
locker.install("uv")
for name, groups in LOCKS.items():
    target = f"requirements/{name}.txt"
    run(locker.python, "-m", "uv", "pip", "compile", "pyproject.toml", *groups, *OPTIONS, "-o", target, *sys.argv[1:])
    print(f"wrote {target}")
