"""What may be typed where, as shells and manuals want to know it: one view of the tables of commands and settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from mcp_memory.commands import COMMANDS, Command, flag_of
from mcp_memory.settings import DEFAULT_FILE, FIELDS, PREFIX

Kind = Literal["", "files", "folders"]


class Value(msgspec.Struct, frozen=True):
    """What can follow: some words, a file, a folder, or what nobody can guess."""

    name: str
    words: tuple[str, ...] = ()
    kind: Kind = ""


class Flag(msgspec.Struct, frozen=True):
    """An option as it is typed; without a value it is a yes-or-no."""

    names: tuple[str, ...]
    about: str
    value: Value | None = None
    variable: str = ""
    default: str = ""

    @property
    def short(self) -> str:
        """The first sentence, for a list that is looked through."""
        return first_sentence(self.about)


def first_sentence(text: str) -> str:
    head, stop, _ = text.partition(". ")
    return (head if stop else text.removesuffix(".")).split(": ")[0]


def settings() -> Iterator[Flag]:
    """What every command understands."""
    for field in FIELDS.values():
        names = (field.said["short"], field.flag) if "short" in field.said else (field.flag,)
        default = str(field.default).lower() if isinstance(field.default, bool) else str(field.default)
        value = value_of(field.value, field.choices)
        yield Flag(names, field.meta.description or "", value, field.env, default)
    about = "The settings file, in TOML."
    yield Flag(("--settings",), about, value_of("FILE"), PREFIX + "SETTINGS", DEFAULT_FILE)
    yield Flag(("-h", "--help"), "Show what can be typed.")
    yield Flag(("--version",), "Show the version.")


def options(command: Command) -> Iterator[Flag]:
    """What only this command understands."""
    for name, option in command.options.items():
        yield Flag((flag_of(name),), option.about, value_of(option.value))


def arguments(command: Command) -> Iterator[Value]:
    """What follows the command, in this order."""
    for word in command.words:
        value = value_of(word.strip("[]"))
        assert value is not None
        yield value


def value_of(said: str, choices: tuple[str, ...] = ()) -> Value | None:
    """What stands for a value in a help text, understood."""
    if not said:
        return None
    if "|" in said and said.islower():
        choices = choices or tuple(said.split("|"))
    kind: Kind = "folders" if "FOLDER" in said else "files" if "FILE" in said else ""
    return Value(said, choices or _known(said), kind)


def _known(said: str) -> tuple[str, ...]:
    """Words that are a table somewhere else."""
    if said.startswith("FAMILY"):
        from mcp_memory.tools.catalog import FAMILIES

        return FAMILIES
    if said == "MODEL":
        from mcp_memory.embedding.models import MODELS

        return ("auto", "none", *MODELS)
    return ()


def every_flag() -> dict[str, Flag]:
    """All options by each of their names. What has the same name takes the same, whatever the command."""
    flags = [*settings(), *(flag for command in COMMANDS.values() for flag in options(command))]
    return {name: flag for flag in flags for name in flag.names}
