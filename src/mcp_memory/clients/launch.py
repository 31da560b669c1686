"""How a client starts this program: by the command that is running now, or by one that fetches it."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

import msgspec

from mcp_memory.clients.former import words_of
from mcp_memory.settings import FIELDS, BadSetting, full_path

PROGRAM = "mcp-memory"
# Folders of runners that are emptied from time to time: a path into them is none that will last.
PASSING = {
    "archive-v0": "uvx",
    "environments-v2": "uvx",
    "pipx/.cache": "pipx",
    ".cache/pipx": "pipx",
}
# How a runner is told what to run, from the package of that name or from somewhere else.
RUNNERS = {
    "uvx": ((PROGRAM,), ("--from", "{}", PROGRAM)),
    "pipx": (("run", PROGRAM), ("run", "--spec", "{}", PROGRAM)),
}
SOURCE_AFTER = frozenset({"--from", "--spec"})
SLIM = "mcp-memory-slim"
# What says nothing to a server that one client starts for itself.
FOR_MANY_CLIENTS = (
    *("transport", "bind", "auth_token", "auth_token_file", "allow_unauthenticated", "tls_cert", "tls_key"),
    *("public_url", "oauth_issuer", "oauth_audience", "oauth_jwks", "oauth_scope_prefix", "rate_limit"),
    *("max_parallel", "compress_from", "audit", "allowed_hosts", "allowed_origins", "max_connections"),
)


class Launch(msgspec.Struct, frozen=True):
    """A command with what it needs."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


def launch(flags: Mapping[str, str], uvx: bool, portable: bool) -> Launch:
    """How to start a server with these settings, given as options. `portable`: the line is for other computers too."""
    command, first = _program(uvx, portable)
    args, env = list(first), {}
    for name, said in flags.items():
        if name in FOR_MANY_CLIENTS:
            raise BadSetting(
                f"--{name.replace('_', '-')} is for a server that many clients share, and this client starts one of "
                "its own. How to connect it to a shared one: docs/clients/other.md."
            )
        if name == "memory_file":
            env[FIELDS[name].env] = full_path(said)
        else:
            args += _argument(name, said)
    return Launch(command, tuple(args), env)


def _argument(name: str, said: str) -> list[str]:
    """A setting as an option. What names a place must do so from wherever the client starts us."""
    if name == "settings":
        return ["--settings", full_path(said)]
    field = FIELDS[name]
    if field.kind is bool:
        return [field.flag] if field.read(said, field.flag) else [f"{field.flag}=false"]
    if name == "roots":
        said = os.pathsep.join(full_path(part) for part in said.split(os.pathsep) if part)
    elif name == "model" and os.path.isdir(full_path(said)):
        said = full_path(said)
    return [field.flag, said]


def _program(uvx: bool, portable: bool) -> tuple[str, tuple[str, ...]]:
    path = None if uvx else _own_path()
    if path is None and not uvx:
        return sys.executable, ("-m", "mcp_memory")
    slashed = (path or "").replace("\\", "/")
    runner = "uvx" if uvx else next((name for mark, name in PASSING.items() if f"/{mark}/" in slashed), None)
    if runner is None:
        return path or "", ()
    package, (plain, other) = _package(), RUNNERS[runner]
    source = _source(package)
    args = plain if source == PROGRAM else tuple(source if word == "{}" else word for word in other)
    # What a desktop starts rarely has the PATH of a terminal, so the runner is named in full where that may stand.
    return (None if portable else shutil.which(runner)) or runner, args


def _package() -> str:
    """Which of the two packages this is: the one without semantic search has a name of its own."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        version(PROGRAM)
    except PackageNotFoundError:
        with contextlib.suppress(PackageNotFoundError):
            version(SLIM)
            return SLIM
    return PROGRAM


def _source(package: str) -> str:
    """What a runner gets this very package from. A name alone means whatever an index has under it, so it is only
    given where this installation came from an index: from anywhere else, the installer has noted where (PEP 610)."""
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        noted = msgspec.json.decode(distribution(package).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, msgspec.DecodeError):
        return package
    url, subfolder, version = noted.get("url", ""), noted.get("subdirectory"), noted.get("vcs_info")
    if not url:
        return package
    if version:
        url = f"{version['vcs']}+{url}@{version.get('requested_revision') or version['commit_id']}"
    elif urlsplit(url).scheme == "file":
        path = url2pathname(urlsplit(url).path)
        return os.path.join(path, subfolder) if subfolder else path
    return f"{url}#subdirectory={subfolder}" if subfolder else url


def is_of_this_computer(start: Launch) -> bool:
    """Does this name a program, or where a runner gets it from, by a path?"""
    sources = (there for word, there in itertools.pairwise(start.args) if word in SOURCE_AFTER)
    return any(os.path.isabs(path) for path in (start.command, *itertools.islice(sources, 1)))


def _own_path() -> str | None:
    """The command as it was typed, if it was ours, or the one beside this Python. A link is not followed: the
    installer that made it will keep it, and not what it leads to."""
    names = (PROGRAM, f"{PROGRAM}.exe")
    typed = shutil.which(sys.argv[0]) if sys.argv and os.path.basename(sys.argv[0]) in names else None
    beside = (os.path.join(os.path.dirname(sys.executable), name) for name in names)
    return next((os.path.abspath(path) for path in (typed, *beside) if path and os.path.isfile(path)), None)


def typed(words: Sequence[str], shell: str) -> str:
    """A command as somebody would type it in this shell."""
    return TYPED[shell](words)


def _powershell_quoted(word: str) -> str:
    return word if re.fullmatch(r"[\w./\\:-]+", word) else "'" + word.replace("'", "''") + "'"


TYPED: dict[str, Callable[[Sequence[str]], str]] = {
    "sh": shlex.join,
    # Git's bash takes a backslash for itself. Without quotation marks PowerShell understands it too, which is what
    # Claude Code uses where there is no bash.
    "bash": lambda words: shlex.join(word.replace("\\", "/") for word in words),
    # Whether a host takes cmd or PowerShell here has changed before; both understand this.
    "cmd": lambda words: "cmd /c " + subprocess.list2cmdline(words),
    # What begins with a quotation mark is a text there and no command, unless it is called.
    "powershell": lambda words: "& " + " ".join(map(_powershell_quoted, words)),
}


# ── an entry that is there already ───────────────────────────────────────────────────────────────

# The keys, of any client, that say how a server is started or reached. Others are the user's own: they stay.
HOW = frozenset(
    "type command args env environment cwd envFile env_vars url httpUrl serverUrl headers http_headers "
    "env_http_headers bearer_token_env_var transport enabled disabled".split()
)
OURS = frozenset(field.env for field in FIELDS.values()) | {"MCP_MEMORY_SETTINGS"}


def kept_environment(entry: object) -> dict[str, str]:
    """What an entry sets for this program, or for the official server, which knows one of the same variables."""
    if not isinstance(entry, dict):
        return {}
    env = entry.get("env") or entry.get("environment") or {}
    return {key: value for key, value in env.items() if key in OURS and isinstance(value, str)}


def kept_arguments(entry: object) -> tuple[str, ...]:
    """The settings in an entry that starts this program already."""
    words = words_of(entry)
    ours = [at for at, word in enumerate(words) if _names_us(word)]
    return tuple(words[ours[-1] + 1 :]) if ours else ()


def _names_us(word: str) -> bool:
    name = word.replace("\\", "/").rpartition("/")[2]
    return name.removesuffix(".exe") in (PROGRAM, "mcp_memory")


def merged(entry: object, ours: dict[str, object]) -> dict[str, object]:
    """Our entry, with what the user's own has besides how to start it."""
    others = entry if isinstance(entry, dict) else {}
    return {**ours, **{key: value for key, value in others.items() if key not in HOW and key not in ours}}
