"""What can be typed after `mcp-memory`: a table, and nothing that it leads to is imported before it is asked for.

A new command is a row here and a function that takes the request, its words, and by keyword the options
that were given; what an option means when it is not given is the default of that parameter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from mcp_memory.clients.table import CLIENTS

Count = Annotated[int, Meta(ge=1)]


class Option(msgspec.Struct, frozen=True):
    """One option of a command. Without a `value` it is a yes-or-no."""

    about: str
    value: str = ""  # what stands for the value in a help text
    kind: Any = str  # what the value must be; commas separate where it is a tuple
    expected: str = ""  # the same in words, where EXPECTED has none that fit


class Command(msgspec.Struct, frozen=True):
    """One word after `mcp-memory`, what it needs, and what does it."""

    does: str  # module:function
    about: str
    words: tuple[str, ...] = ()  # what follows; in [brackets] if it may be left out
    options: Mapping[str, Option] = {}

    @property
    def function(self) -> Callable[..., int]:
        module, name = self.does.split(":")
        function: Callable[..., int] = getattr(import_module(module), name)
        return function


JSON = Option("Print JSON, for programs.")
WEIGHT = Annotated[float, Meta(ge=0, lt=1e9)]
FROM_ZERO, ALL_FROM_ZERO = "a number from 0 up", "numbers from 0 up, with commas between"
EXPECTED = {
    str: "text",
    Count: "a whole number from 1 up",
    int: "a whole number",
    float: "a number",
    tuple[float, ...]: "numbers, with commas between",
    tuple[str, ...]: "names, with commas between",
}

COMMANDS = {
    "serve": Command(
        "mcp_memory.cli:serve", "Speak MCP on standard input and output. This is what happens without a command."
    ),
    "init": Command(
        "mcp_memory.clients.command:init",
        "Put this memory into the configuration of a client, with the settings that are given as options. Shows what "
        "would be written and asks; what was there is kept beside and can be taken back. On a terminal it also offers "
        "the rules and the hook.",
        ("|".join(CLIENTS),),
        {
            "scope": Option("For all your work, or for the project in this folder. [default: user]", "user|project"),
            "rules": Option("Also write rules for its model: when to recall and when to save."),
            "hook": Option("Also let each session begin with what the memory knows, where the client can do that."),
            "uvx": Option(
                "Start it by uvx, from where this installation came, and not by the path of this installation."
            ),
            "config": Option("Another configuration file than the client's usual one.", "FILE"),
            "yes": Option("Write without asking."),
            "print": Option("Only show what would be written."),
            "undo": Option("Take back what the last init of this client wrote."),
        },
    ),
    "brief": Command(
        "mcp_memory.clients.brief:brief",
        "Tell in a few lines what the memory holds and what was learnt last, for the beginning of a session.",
        options={"hook": Option("As JSON, as hosts want it from a hook, and in no case with a failure.")},
    ),
    "demo": Command("mcp_memory.cli:demo", "Show a conversation with a server on a temporary file."),
    "import": Command(
        "mcp_memory.cli:import_file",
        "Take over another memory file: JSONL of the official server, a journal (.mcpmem) or what was taken out of a "
        "damaged one (.mcpmem.quarantine), a SQLite database of this program or of its Python predecessor. The file is "
        "only read, and repeating it does no harm.",
        ("FILE",),
    ),
    "export": Command(
        "mcp_memory.cli:export_file",
        "Write everything into a new file. Its suffix tells the format: .jsonl, .mcpmem or .db for the facts, "
        ".mcphistory for the whole memory with its history. What a format has no place for is counted.",
        ("FILE",),
        {
            "journal_version": Option(
                "Of a .mcpmem file: 1 for the Rust server before 2.0, which takes a journal of version 2 for an empty "
                "memory. [default: 2]",
                "1|2",
                Annotated[int, Meta(ge=1, le=2)],
                "1 or 2",
            )
        },
    ),
    "backup": Command(
        "mcp_memory.cli:backup",
        "Copy the whole memory, history included, while servers go on; the copy is opened and examined before it gets "
        "its name. Without FILE it stands beside the memory, named by its time; FILE may be a folder.",
        ("[FILE]",),
        {"keep": Option("Of copies named by their time keep the newest N; older ones are removed.", "N", Count)},
    ),
    "restore": Command(
        "mcp_memory.cli:restore",
        "Put a backup in the place of the memory, which is copied beside itself first. Refused if the backup is not in "
        "order, and while a server has a database open; a server on a plain file goes on with what was restored.",
        ("FILE",),
    ),
    "compact": Command(
        "mcp_memory.cli:compact",
        "Give back the disk space that deleted facts still take, and let go of the history that history_days and "
        "history_calls need not keep. Servers may go on. For a timer: nothing lets go of history by itself.",
    ),
    "doctor": Command(
        "mcp_memory.cli:doctor",
        "Check that everything agrees with everything else. The exit code is 1 if something does not.",
        options={
            "repair": Option("Put right what can be derived from the facts."),
            "json": JSON,
        },
    ),
    "model": Command(
        "mcp_memory.embedding.command:model",
        "Models that turn texts into meaning. list: which there are; which: the one in use; download: fetch one from "
        "the Hugging Face hub or from HF_ENDPOINT, by default the documented one; verify: compare files with their "
        "hashes.",
        ("[list|which|download|verify]", "[NAME]"),
    ),
    "stats": Command("mcp_memory.cli:stats", "Count what the memory file holds."),
    "health": Command(
        "mcp_memory.health:health",
        "Ask the server that these settings describe whether it is ready (over http: /readyz). The exit code is 1 if "
        "it is not.",
    ),
    "metrics": Command(
        "mcp_memory.tuning:metrics",
        "Tell how well search_semantic put on top what was then used, beside the order that relevance alone would have "
        "given: nDCG, lift, precision and MRR.",
        options={
            "json": JSON,
            "cuts": Option(
                "How many of the first results to look at. [default: 1,3,5,10]",
                "K,...",
                Annotated[tuple[Annotated[int, Meta(ge=1)], ...], Meta(min_length=1)],
                "whole numbers from 1 up, with commas between",
            ),
        },
    ),
    "tune": Command(
        "mcp_memory.tuning:tune",
        "Find out from the logged searches which weights of company (gamma) and importance (beta_sal) would have put "
        "on top what was then used. Running servers follow at once.",
        options={
            "analyze": Option("Say what the log tells and what --tune would do. This is what happens without options."),
            "tune": Option("Move the weights a step towards the best, if the log tells which they are."),
            "simulate": Option("Plant known weights in made-up logs and see whether they are found."),
            "set_gamma": Option("Set the weight of company.", "X", WEIGHT, FROM_ZERO),
            "set_beta": Option("Set the weight of importance.", "X", WEIGHT, FROM_ZERO),
            "gamma_range": Option(
                "Weights of company to try. [default: 0.001,0.005,0.01,0.05,0.1]",
                "X,...",
                Annotated[tuple[WEIGHT, ...], Meta(min_length=1)],
                ALL_FROM_ZERO,
            ),
            "beta_sal_range": Option(
                "Weights of importance to try. [default: 0.1,0.25,0.5,0.75,1.0]",
                "X,...",
                Annotated[tuple[WEIGHT, ...], Meta(min_length=1)],
                ALL_FROM_ZERO,
            ),
            "blend": Option(
                "How much of the way to go at a time: an exponential moving average. [default: 0.1]",
                "X",
                Annotated[float, Meta(gt=0, le=1)],
                "a number above 0 and up to 1",
            ),
            "min_events": Option(
                "So many searches must have been followed by use. [default: 50]",
                "N",
                Annotated[int, Meta(ge=1)],
                "a whole number from 1 up",
            ),
            "json": JSON,
        },
    ),
    "torture": Command(
        "mcp_memory.torture.command:torture",
        "Ask servers on temporary files for many writes at once while they are killed, their disk is full, broken or "
        "slow, their clock jumps and the power fails; then look for everything they acknowledged. Any other MCP memory "
        "server can stand beside ours. The exit code is 1 if something was lost.",
        options={
            "rounds": Option("So many rounds for each. [default: 50]", "N", Count),
            "processes": Option("So many processes on one file. [default: 3]", "N", Count),
            "calls": Option("So many calls at once to each, in a round. [default: 12]", "N", Count),
            "stores": Option(
                "Ours to torture: sqlite, journal, jsonl; or none. [default: all three]", "NAME,...", tuple[str, ...]
            ),
            "faults": Option(
                "What befalls them: kill, full, failing, slow, clock, power. Another server meets those that can be "
                "made without its help. [default: all]",
                "NAME,...",
                tuple[str, ...],
            ),
            "seed": Option("Begin chance here. [default: anywhere]", "N", int),
            "minutes": Option(
                "Stop after so long; the exit code is 3 then. [default: half a minute a round, and at least 30]",
                "X",
                Annotated[float, Meta(gt=0)],
                "a number above 0",
            ),
            "at_once": Option(
                "So many targets at the same time. [default: as many as there are processors]", "N", Count
            ),
            "server": Option(
                "Another server too, by its command line. {file} in it stands for the memory file.", "COMMAND"
            ),
            "file_variable": Option("The environment variable that tells the other server its file.", "NAME"),
            "file_name": Option("How its file is to be named. [default: memory.json]", "NAME"),
            "json": JSON,
        },
    ),
    "token": Command(
        "mcp_memory.cli:token",
        "Manage the tokens that clients show over tcp and http, in the file that --auth-token-file names: create NAME, "
        "list, revoke NAME. A token is shown once, when it is created; only its hash is kept.",
        ("create|list|revoke", "[NAME]"),
        {
            "scopes": Option("What it allows: read, write, admin, with commas between.", "SCOPES", tuple[str, ...]),
            "expires": Option("When it ends: a length such as 30d or 12h, or a date such as 2026-12-31.", "WHEN"),
        },
    ),
    "completion": Command(
        "mcp_memory.shell.completion:completion",
        "Print a script that lets a shell complete what is typed after mcp-memory; its first lines say how to use it.",
        ("bash|zsh|fish|powershell",),
    ),
    "man": Command("mcp_memory.shell.manual:man", "Print the manual page: mcp-memory man | man -l -"),
}


def flag_of(name: str) -> str:
    return "--" + name.replace("_", "-")


# Every option of every command. The same name means the same to all that have it: a value, or none.
OPTIONS = {flag_of(name): (name, option) for command in COMMANDS.values() for name, option in command.options.items()}


def usage(name: str) -> str:
    """A command as it is typed."""
    command = COMMANDS[name]
    options = [f"[{told(option, of)}]" for option, of in command.options.items()]
    return " ".join(["mcp-memory", name, *command.words, *(options if len(options) <= 2 else ["[OPTIONS]"])])


def told(name: str, option: Option) -> str:
    return f"{flag_of(name)} {option.value}".rstrip()
