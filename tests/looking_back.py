"""The conversation in docs/history.md: a client looks back and takes something back, and what was said is written
down.

`python -m tests.looking_back` writes it anew; tests/test_looking_back.py compares."""

from __future__ import annotations

import sys
import tempfile
import textwrap
from pathlib import Path

from tests.conftest import link, person
from tests.maintenance import BEGIN, END, WIDTH, Scribe, parts
from tests.wire.test_care import Wire

PAGE = Path(__file__).parent.parent / "docs" / "history.md"


def conversation(scribe: Scribe) -> None:
    wire = scribe.wire
    scribe.on("2026-03-02")
    wire.ask("create_entities", {"entities": [person("Ada", "Leads Atlas"), person("Ada L."), person("Atlas")]})
    scribe.on("2026-03-03")
    wire.ask("create_relations", {"relations": [link("Ada L.", "leads", "Atlas")]})
    wire.ask("add_observations", {"name": "Atlas", "observations": ["Ships in May"]})
    scribe.on("2026-03-04")
    wire.ask("merge_entities", {"source": "Ada L.", "target": "Atlas"})
    wire.ask("add_observations", {"name": "Atlas", "observations": ["Written in Python"]})

    scribe.say("**Where did Ada L. go?** An entity has a history also when it is gone.")
    scribe.call("history", name="Ada L.")
    scribe.say("**That was the wrong target.** What came later does not depend on it, so it can be taken back alone.")
    scribe.call("undo", call=4)
    scribe.say("**Where something depends on it, the call stays** until that is taken back as well.")
    refused = textwrap.wrap(wire.refusal("undo", call=1)["error"], WIDTH - 3)
    scribe.lines += [
        "```",
        '-> undo {"call": 1}',
        f"<- {refused[0]}",
        *(f"   {line}" for line in refused[1:]),
        "```",
        "",
    ]
    scribe.say("**How did it look on the second of March?**")
    scribe.call("search_nodes", query="Atlas", asOf="2026-03-02")


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


def main() -> int:
    before, _, after = parts(PAGE.read_text(encoding="utf-8"))
    page = f"{before}{BEGIN}\n\n{transcript().rstrip()}\n\n{END}{after}"
    PAGE.write_text(page, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
