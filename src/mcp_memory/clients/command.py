"""`mcp-memory init CLIENT`: show what would be written, ask, write it, and be able to take it back."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from difflib import get_close_matches

from mcp_memory.advice import RULES
from mcp_memory.clients import ledger
from mcp_memory.clients.draft import Draft, drafted, go_back, revert, way_back, write
from mcp_memory.clients.edits import Edit
from mcp_memory.clients.ledger import Run
from mcp_memory.clients.setup import Setup, setup_for
from mcp_memory.clients.table import CLIENTS
from mcp_memory.quoting import visible
from mcp_memory.settings import BadSetting, Request

UNASKED = "Nothing was written: there is nobody to ask. Say --yes to write it, or --print to only see it."


def init(
    request: Request,
    client: str,
    *,
    scope: str = "",
    rules: bool = False,
    hook: bool = False,
    uvx: bool = False,
    config: str = "",
    yes: bool = False,
    print: bool = False,
    undo: bool = False,
) -> int:
    if client not in CLIENTS:
        near = get_close_matches(client.lower().replace(" ", "-"), CLIENTS, 1, 0.4)
        raise BadSetting(
            f"There is no client {client!r}{f'; did you mean {near[0]}' if near else ''}. "
            f"The clients are {', '.join(CLIENTS)}. For any other: docs/clients/other.md."
        )
    if scope not in ("", "user", "project"):
        raise BadSetting(f"--scope cannot be {scope!r}: it must be user or project.")
    if hasattr(sys.stdout, "reconfigure"):  # a file may hold what a terminal has no sign for
        sys.stdout.reconfigure(errors="replace")
    asking = Asking(yes, print)
    if undo:
        return _undo(client, scope, asking)
    setup = setup_for(client, scope or "user", request.flags, uvx, config)
    return _init(client, setup, rules, hook, asking)


class Asking:
    """Whether something may be written: said beforehand, asked on a terminal, or not at all."""

    def __init__(self, yes: bool, only_print: bool) -> None:
        self.yes, self.only_print = yes, only_print
        self.code = 0  # how the program ends

    @property
    def somebody(self) -> bool:
        return not (self.yes or self.only_print) and sys.stdin.isatty()

    def may(self, question: str) -> bool:
        if self.yes or self.only_print:
            return self.yes and not self.only_print
        if not self.somebody:
            print(UNASKED, file=sys.stderr)
            self.code = 2
            return False
        try:
            answer = input(f"{question} [y/N] ")
        except EOFError:
            answer = ""
        if answer.strip().lower() in ("y", "yes"):
            return True
        print("Nothing was written.")
        self.code = 1
        return False


def _init(name: str, setup: Setup, rules: bool, hook: bool, asking: Asking) -> int:
    told = list(setup.remarks())
    extras = {"rules": setup.rules(), "hook": setup.hook()}
    if rules and not extras["rules"]:
        told.append(f"{setup.client.no_rules}. The text:\n\n{RULES}")
    if hook and not extras["hook"]:
        told.append(f"{setup.client.title} runs no command when a session starts, so --hook does nothing here.")
    wanted = [*setup.entry(), *(extras["rules"] if rules else ()), *(extras["hook"] if hook else ())]
    drafts = drafted(wanted)
    run = Run(name, setup.scope, os.getcwd())
    if not drafts:
        print(f"{setup.client.title} is set up already: {setup.config}")
    _show(drafts)
    for line in told:
        print(line, file=sys.stderr)
    if drafts and not _write(drafts, run, asking, "Write this?"):
        return asking.code
    if asking.somebody:
        chosen = {"rules": rules, "hook": hook}
        _offer({QUESTIONS[what]: edits for what, edits in extras.items() if not chosen[what]}, run, asking)
    if run.files:
        print(setup.client.then)
        if setup.client.hook_note and any(one.path == path for one in run.files for path, _ in extras["hook"]):
            print(setup.client.hook_note)
        print(f"To take it back: mcp-memory init {name}{' --scope project' * (setup.scope == 'project')} --undo")
    return 0


QUESTIONS = {
    "rules": "Add these rules, so that its model recalls and saves without being asked?",
    "hook": "Add this hook, so that each session begins with what the memory knows?",
}


def _offer(offers: dict[str, list[tuple[str, Edit]]], run: Run, asking: Asking) -> None:
    """What somebody may want besides; no is an answer that changes nothing about the rest."""
    for question, edits in offers.items():
        drafts = drafted(edits)
        _show(drafts)
        if drafts:
            _write(drafts, run, asking, question)


def _show(drafts: Iterable[Draft]) -> None:
    for draft in drafts:
        for line in draft.shown():
            print(visible(line))
        print()


def _write(drafts: list[Draft], run: Run, asking: Asking, question: str) -> bool:
    if not asking.may(question):
        return False
    runs = ledger.runs()  # before anything is written: what cannot be noted cannot be taken back
    run.number = run.number or 1 + max((each.number for each in runs), default=0)
    done = write(drafts)
    run.files += done
    try:
        ledger.keep([*(each for each in runs if each.number != run.number), run])
    except BaseException:
        revert(done)
        raise
    for one in done:
        print(f"Wrote {one.path}" + (f" (as it was: {one.backup})" if one.backup else ""))
    return True


def _undo(name: str, scope: str, asking: Asking) -> int:
    runs = ledger.runs()
    here = os.getcwd()
    fitting = [
        run
        for run in runs
        if run.client == name and run.scope in (scope or run.scope) and (run.scope == "user" or run.project == here)
    ]
    if not fitting:
        elsewhere = [run.project for run in runs if run.client == name and run.scope == "project"]
        hint = f" There is something in {elsewhere[-1]}." if elsewhere and scope != "user" else ""
        raise BadSetting(f"There is nothing to take back for {name}{f' --scope {scope}' if scope else ''}.{hint}")
    run = fitting[-1]
    back = way_back(run.files)
    _show(draft for draft in back.drafts if draft.changes)
    if not asking.may("Take this back?"):
        return asking.code
    go_back(back)
    ledger.keep([each for each in runs if each is not run])
    for draft in back.drafts:
        print(f"{'Removed' if draft.after is None else 'As before'}: {draft.path}")
    for remark in back.remarks:
        print(remark)
    return 0
