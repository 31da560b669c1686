"""Write docs/tools.md, docs/settings.md and docs/mcp-memory.1 from the code that they describe:
`python scripts/docs.py`.

With `--check` nothing is written and the exit code tells whether they are up to date. It needs the
package installed (`.venv-dev` has it)."""

import json
import sys
from collections.abc import Iterator
from typing import Any

from environment import CHECKOUT

from mcp_memory.facts import OFFICIAL_LIMITS, Limits
from mcp_memory.settings import DEFAULT_FILE, FIELDS, PREFIX
from mcp_memory.shell import manual
from mcp_memory.tools.catalog import FAMILIES, PROFILES, catalog
from mcp_memory.tools.registry import Tool

TYPES = {"string": "text", "integer": "whole number", "boolean": "true or false", "null": "null"}
BOUNDS = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minimum": "{} or more",
    "maximum": "{} or less",
    "minItems": "at least {}",
    "maxItems": "at most {}",
}
HINTS = {"destructiveHint": "destructive", "idempotentHint": "may be repeated without harm"}


def tools_page() -> Iterator[str]:
    """docs/tools.md, line by line."""
    yield "# Tools"
    yield ""
    yield "Written by `scripts/docs.py` from the tools: change their signatures and docstrings, not this page."
    yield ""
    yield from _profiles()
    yield from _limits()
    for family in FAMILIES:
        members = [tool for tool in catalog("full").values() if tool.family == family]
        if members:
            yield f"## {family.capitalize()}"
            yield ""
            for tool in members:
                yield from _tool(tool)
    yield "## The official profile"
    yield ""
    yield "With `--profile official` tools, answers and refusals are those of the official memory server."
    yield ""
    for tool in catalog("official").values():
        yield from _tool(tool)


def _profiles() -> Iterator[str]:
    offered = {profile: catalog(profile) for profile in PROFILES}
    names = list(dict.fromkeys(name for tools in offered.values() for name in tools))
    yield "| Tool | Family | " + " | ".join(f"`{profile}`" for profile in PROFILES) + " |"
    yield "|---|---|" + "---|" * len(PROFILES)
    for name in names:
        family = offered["full"][name].family if name in offered["full"] else ""
        yield f"| `{name}` | {family} | " + " | ".join("x" if name in offered[p] else "" for p in PROFILES) + " |"
    yield ""
    yield "`--profile` chooses a column, `--tools` families of it, `--read-only` leaves out what writes."
    yield ""


def _limits() -> Iterator[str]:
    yield "## Limits of a call"
    yield ""
    yield "| Setting | Limit | In the official profile |"
    yield "|---|---|---|"
    for name in Limits.__struct_fields__:
        about = FIELDS[f"max_{name}"].meta.description
        yield f"| `max_{name}`: {about} | {getattr(Limits(), name):,} | {getattr(OFFICIAL_LIMITS, name):,} |"
    yield ""


def _tool(tool: Tool) -> Iterator[str]:
    yield f"### `{tool.name}`"
    yield ""
    yield tool.description
    yield ""
    said = [HINTS[hint] for hint in HINTS if tool.annotations[hint] and tool.writes]
    said += ["needs the scope `admin`"] * (tool.scope == "admin")
    yield "*" + ", ".join(["writes" if tool.writes else "reads", *said]) + "*"
    yield ""
    rows = list(_parameters(tool.schema))
    if rows:
        yield "| Argument | Type | Needed | Default |"
        yield "|---|---|---|---|"
        yield from rows
    else:
        yield "No arguments."
    yield ""


def _parameters(schema: dict[str, Any], inside: str = "") -> Iterator[str]:
    needed = schema.get("required", ())
    for name, part in schema.get("properties", {}).items():
        default = f"`{json.dumps(part['default'], ensure_ascii=False)}`" if "default" in part else ""
        yield f"| `{inside}{name}` | {_type(part)} | {'yes' if name in needed else ''} | {default} |"
        for one in _options(part):
            if one.get("type") == "array":
                for item in _options(one.get("items", {})):
                    yield from _parameters(item, f"{inside}{name}[].")
            else:
                yield from _parameters(one, f"{inside}{name}.")


def _options(part: dict[str, Any]) -> list[dict[str, Any]]:
    options: list[dict[str, Any]] = part.get("anyOf", [part])
    return options


def _type(part: dict[str, Any]) -> str:
    if "enum" in part:
        return "one of " + ", ".join(f"`{choice}`" for choice in part["enum"])
    if "anyOf" in part:
        return " or ".join(map(_type, part["anyOf"]))
    bounds = [said.format(part[bound]) for bound, said in BOUNDS.items() if bound in part]
    kind = part.get("type", "anything")
    if kind == "array":
        name = f"list of {_type(part.get('items', {}))}"
    else:
        name = "object" if kind == "object" else " or ".join(TYPES.get(k, k) for k in _listed(kind))
    about = f" ({part['description']})" if "description" in part else ""
    return ", ".join([name, *bounds]) + about


def _listed(kind: str | list[str]) -> list[str]:
    return [kind] if isinstance(kind, str) else kind


def settings_page() -> Iterator[str]:
    """docs/settings.md, line by line."""
    yield "# Settings"
    yield ""
    yield "Written by `scripts/docs.py` from `src/mcp_memory/settings.py`; change it there."
    yield ""
    yield "The first that names a setting decides it: the option, the environment variable, the settings file"
    yield f"(`--settings FILE`, `{PREFIX}SETTINGS`, or `{DEFAULT_FILE}` if it exists), the default. In the file, which"
    yield "is TOML, a setting has the name of its option with `_` for `-`: `read_only = true`. An empty environment"
    yield "variable counts as not set."
    yield ""
    yield "A server that runs takes up within a second or two which tools the file chooses (`profile`, `tools`,"
    yield "`read_only`; not to or from `official`), and tells its clients. All else holds from its next start on."
    yield ""
    yield "| Option | Variable | Default | What it chooses |"
    yield "|---|---|---|---|"
    for field in FIELDS.values():
        short = f"`{field.said['short']}`, " if "short" in field.said else ""
        option = f"`{' '.join(part for part in (field.flag, field.value) if part)}`".replace("|", "\\|")
        default = str(field.default).lower() if isinstance(field.default, bool) else field.default
        yield f"| {short}{option} | `{field.env}` | {default} | {field.meta.description} |"
    yield ""


def _joined(lines: Iterator[str]) -> str:
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    pages = {
        "docs/tools.md": _joined(tools_page()),
        "docs/settings.md": _joined(settings_page()),
        "docs/mcp-memory.1": manual.page(),
    }
    stale = []
    for name, text in pages.items():
        file = CHECKOUT / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            stale.append(name)
            if "--check" not in sys.argv:
                file.write_text(text, encoding="utf-8", newline="\n")
    print(f"{'stale' if '--check' in sys.argv else 'wrote'}: {', '.join(stale) or 'nothing'}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
