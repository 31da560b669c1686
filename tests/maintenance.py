"""The conversation in docs/maintenance.md: a real client tends a real memory, and what was said is written down.

`python -m tests.maintenance` writes it anew; tests/test_maintenance.py compares."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.wire.test_care import ARCHITECTURE, DEPLOYMENT, WORK, Wire

PAGE = Path(__file__).parent.parent / "docs" / "maintenance.md"
BEGIN, END = "<!-- what follows was really said -->", "<!-- so far -->"
MOST_ITEMS = 3
WIDTH = 110
PATIENCE = 60

PROJECT = "Proyecto cachorros"
KNOWN = [
    *ARCHITECTURE,
    *WORK,
    *DEPLOYMENT,
    "Release planned for March 3",
]


class Scribe:
    """Calls tools and writes down what was said."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.lines: list[str] = []

    def on(self, day: str) -> None:
        self.wire.space.clock = lambda: f"{day} 09:00:00"

    def say(self, prose: str) -> None:
        self.lines += [prose, ""]

    def call(self, tool: str, **arguments: Any) -> Any:
        caretaker = self.wire.space.caretaker
        if caretaker is not None:
            assert caretaker.hurry(PATIENCE)
        answer = self.wire.ask(tool, arguments)
        self.lines += ["```", *said("->", f"{tool} ", arguments), *said("<-", "", answer), "```", ""]
        return answer


def said(sign: str, name: str, value: Any) -> Iterator[str]:
    """A message as JSON, a long one over several lines, and of a long list the first few items."""
    text = json.dumps(shortened(value), ensure_ascii=False)
    if len(text) + len(name) > WIDTH:
        text = json.dumps(shortened(value), ensure_ascii=False, indent=1)
        # Innermost objects and lists on a line of their own read better than a field a line.
        text = re.sub(r"[\[{][^\[\]{}]*[\]}]", lambda match: re.sub(r"\s*\n\s*", " ", match[0]), text)
    text = re.sub(r'"… (\d+) more"', r"… \1 more", text)
    for number, line in enumerate(text.split("\n")):
        yield f"{sign if not number else '  '} {name if not number else ''}{line}"


def shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in value.items()}
    if isinstance(value, list):
        more = len(value) - MOST_ITEMS
        items = [shortened(item) for item in value[: MOST_ITEMS if more > 1 else len(value)]]
        return [*items, f"… {more} more"] if more > 1 else items
    return round(value, 2) if isinstance(value, float) else value


def conversation(scribe: Scribe) -> None:
    create, relate = "create_entities", "create_relations"
    wire = scribe.wire
    scribe.on("2025-01-10")
    wire.ask(create, {"entities": [{"name": "Landing page", "entityType": "Idea", "observations": ["Use big fonts"]}]})
    scribe.on("2026-03-02")
    wire.ask(create, {"entities": [{"name": PROJECT, "entityType": "Proyecto", "observations": KNOWN}]})
    wire.ask(create, {"entities": [{"name": "Vercel", "entityType": "Sistema"}]})
    wire.ask(relate, {"relations": [{"from": PROJECT, "to": "Vercel", "relationType": "uses"}]})
    scribe.on("2026-03-16")
    twice = [
        "En Vercel, el despliegue es automático",
        "Release planned for March 24",
        "El despliegue en Vercel no es automático en staging",
    ]
    wire.ask("add_observations", {"name": PROJECT, "observations": twice})

    scribe.say("**What needs care?** The report looks at everything and changes nothing.")
    scribe.call("consolidation_report")
    scribe.say(
        "**Three observations are flagged.** Which ones do they repeat? `differs` hints that one replaces the other, "
        "or that both are true."
    )
    scribe.call("find_duplicate_observations", entity_name=PROJECT)
    scribe.say("The first is said twice: one of the two can go.")
    scribe.call("delete_observations", name=PROJECT, observations=[twice[0]])
    scribe.say(
        "The second is a new date. It supersedes the old one, which stays as history: the exact texts are enough."
    )
    scribe.call("add_observations", name=PROJECT, observations=[twice[1]], supersedes="Release planned for March 3")
    scribe.say("The third says something of its own. Its flag is taken off, and it stays as it is.")
    scribe.call("settle_flags", name=PROJECT, observations=[twice[2]])
    scribe.say("**The project has grown too large.** A proposal is only that; read it, change it, then carry it out.")
    proposal = scribe.call("propose_entity_split", entity_name=PROJECT)["proposal"]
    scribe.call("execute_entity_split", entity_name=PROJECT, approved_splits=proposal["suggested_splits"])
    scribe.say("**Something is no longer true.** The relation ends and stays as history; so does the old date.")
    scribe.call("end_relation", relation_id=1)
    scribe.call("describe_entity", name=PROJECT, history=True)
    scribe.say(
        "**Nobody needs the idea any more.** An archived entity stands further down in searches and is not stale."
    )
    scribe.call(create, entities=[{"name": "Landing page", "status": "archivado"}])
    scribe.say("**What was it all about?** A reflection says what no single fact does.")
    scribe.call(
        "add_reflection",
        target_type="entity",
        target_id=PROJECT,
        content="Splitting the project showed that most of our notes are about deployment, and few about people.",
        author="nolan",
        mood="insight",
    )
    scribe.call("search_reflections", query="what are our notes about?")
    scribe.say("**And now?** Nothing is left to do: what repeated only what was superseded has lost its flag too.")
    after = scribe.call("consolidation_report")
    assert not any(after[area] for area in after if area != "summary"), after


def transcript() -> str:
    with tempfile.TemporaryDirectory() as folder:
        wire = Wire(Path(folder) / "memory.db")
        try:
            scribe = Scribe(wire)
            conversation(scribe)
            assert [finding.text for finding in wire.space.check()] == []
        finally:
            wire.space.close()
    return "\n".join(scribe.lines)


def parts(page: str) -> tuple[str, str, str]:
    """What stands before the conversation, the conversation, and what stands behind it."""
    before, _, rest = page.partition(BEGIN)
    inside, _, after = rest.partition(END)
    return before, inside.strip("\n"), after


def main() -> int:
    before, _, after = parts(PAGE.read_text(encoding="utf-8"))
    page = f"{before}{BEGIN}\n\n{transcript().rstrip()}\n\n{END}{after}"
    PAGE.write_text(page, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
