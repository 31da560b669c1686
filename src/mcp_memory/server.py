"""The entry point of the `mcp-memory` command: read what is asked for, and serve.

Serving is what happens nearly always, at the start of every session of a client, so nothing is
imported here that an answer to `initialize` does not need."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mcp_memory import __version__
from mcp_memory.advice import instructions_for
from mcp_memory.facts import MemoryFault
from mcp_memory.settings import BadSetting, Request, Settings, read

if TYPE_CHECKING:
    from mcp_memory.desk import Desk

ABOUT = {"name": "memory", "title": "Memory", "version": __version__}


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks; the result is the exit code."""
    try:
        request = read(sys.argv[1:] if arguments is None else arguments)
        if not (request.words or request.switches or request.options):
            return serve(request)
        from mcp_memory.cli import run

        log_to_stderr(request.settings)
        return run(request)
    except (BadSetting, MemoryFault) as fault:
        from mcp_memory.quoting import visible

        sys.stderr.write(f"mcp-memory: {visible(str(fault))}\n")
        return 2 if isinstance(fault, BadSetting) else 1
    except KeyboardInterrupt:
        return 130


def serve(request: Request) -> int:
    """Answer one client until it closes the connection, or many, until the process is asked to end."""
    from mcp_memory.wire.offer import Offer
    from mcp_memory.wire.stderr import take_standard_error

    settings = request.settings
    check(settings)
    take_standard_error()
    closing: list[Callable[[], None]] = []

    def desk() -> Desk:
        from mcp_memory.assembly import desk_for
        from mcp_memory.following import Follower

        log_to_stderr(settings)
        made = desk_for(settings)
        follower = Follower(request, offer)
        follower.begin()
        closing.extend((follower.end, made.space.close))
        return made

    is_official = settings.profile == "official"
    offer = Offer(
        desk,
        ABOUT,
        None if is_official else instructions_for(settings),
        official=is_official,
        confirm_above=settings.confirm_above,
        output_schemas=settings.output_schemas,
    )

    def close() -> None:
        for one in closing:
            one()

    if settings.transport != "stdio":
        from mcp_memory.wire.serving import listen

        return listen(offer, settings, close)
    from mcp_memory.origins import window
    from mcp_memory.wire.session import Session
    from mcp_memory.wire.stdio import serve as serve_stdio

    return serve_stdio(Session(offer, window(user(), os.urandom(3).hex())), close)


def user() -> str:
    """Who the system says we are: for the history. Another window of the same client is told apart by a number."""
    if sys.platform == "win32":
        return os.environ.get("USERNAME", "somebody")
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a container's user without a name
        return str(os.geteuid())


def check(settings: Settings) -> None:
    """Refuse at the start what could never work: a client shows that, and not what happens later."""
    if settings.transport != "stdio":
        from mcp_memory.wire.access import access_for

        access_for(settings)
    if settings.tools:
        from mcp_memory.tools.catalog import catalog

        catalog(settings.profile, settings.tools, settings.read_only)


def log_to_stderr(settings: Settings) -> None:
    """Standard output belongs to the protocol; whatever else is said goes to standard error."""
    import logging

    from mcp_memory.quoting import visible

    class Visible(logging.Formatter):
        """What was stored cannot steer the terminal that shows the log."""

        def format(self, record: logging.LogRecord) -> str:
            return visible(super().format(record))

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Visible("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler])
