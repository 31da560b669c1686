"""The entry point of the `mcp-memory` command: read what is asked for, and serve.

Serving is what happens nearly always, at the start of every session of a client, so nothing is
imported here that an answer to `initialize` does not need."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mcp_memory.facts import MemoryFault
from mcp_memory.settings import BadSetting, Settings, read

if TYPE_CHECKING:
    from mcp_memory.settings import Request

SERVE: tuple[list[str], ...] = ([], ["serve"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks; the result is the exit code."""
    try:
        request = read(sys.argv[1:] if arguments is None else arguments)
        log_to_stderr(request.settings)
        if request.words in SERVE and not request.switches:
            return serve(request.settings)
        return _command(request)
    except (BadSetting, MemoryFault) as fault:
        sys.stderr.write(f"mcp-memory: {fault}\n")
        return 2 if isinstance(fault, BadSetting) else 1
    except KeyboardInterrupt:
        return 130


def log_to_stderr(settings: Settings) -> None:
    """Standard output belongs to the protocol; whatever else is said goes to standard error."""
    shape = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(stream=sys.stderr, level=settings.log_level.upper(), format=shape)


def serve(settings: Settings) -> int:
    """Answer one client until it closes the connection or the process is asked to end."""
    if settings.transport != "stdio":
        raise BadSetting(
            f"This version cannot speak {settings.transport}, only stdio. Leave out the setting `transport`."
        )
    from mcp_memory.assembly import desk_for
    from mcp_memory.wire.session import Session
    from mcp_memory.wire.stdio import serve as serve_stdio

    desk = desk_for(settings)
    return serve_stdio(Session(desk))


def _command(request: Request) -> int:
    from mcp_memory.cli import run

    return run(request)
