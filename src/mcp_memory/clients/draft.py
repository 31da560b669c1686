"""What is about to happen to files, before it happens: drafted from edits, shown as a diff, then written all together
or not at all."""

from __future__ import annotations

import contextlib
import difflib
import os
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from mcp_memory.clients import files
from mcp_memory.clients.edits import Edit, Unsure
from mcp_memory.clients.ledger import Done
from mcp_memory.clients.text import Broken

CONTEXT, WIDEST = 3, 160


class Draft(msgspec.Struct):
    """One file as it is and as it would be; None where there is none."""

    path: str
    before: bytes | None
    after: bytes | None
    edits: list[Edit] = []
    undo: list[Edit] = []

    @property
    def changes(self) -> bool:
        return self.before != self.after

    def shown(self) -> Iterator[str]:
        """For a person to judge: a diff, or the whole of a new file."""
        before, after = (None if data is None else files.decoded(self.path, data) for data in (self.before, self.after))
        what = " (a new file)" if before is None else " (will be removed)" if after is None else ""
        yield f"{self.path}{what}"
        if before is None:
            yield from (after or "").splitlines()
        else:
            yield from (_narrow(line) for line in diff(before.splitlines(), (after or "").splitlines()))


def drafted(wanted: Iterable[tuple[str, Edit]], known: Mapping[str, bytes | None] = {}) -> list[Draft]:
    """The files as these edits would leave them, beginning with what is known of them or what is there. Several
    edits may be about one file."""
    made: dict[str, Draft] = {}
    for path, edit in wanted:
        if path not in made:
            before = known[path] if path in known else files.read(path)
            made[path] = Draft(path, before, before)
        draft = made[path]
        text = "" if draft.after is None else files.decoded(path, draft.after)
        try:
            edited = edit.apply(text)
            if edited != text:
                draft.undo.insert(0, edit.inverse(text))
        except (Broken, Unsure) as fault:
            raise files.Untouchable(f"{path}: {fault}. It was not touched.") from fault
        draft.edits.append(edit)
        if edited != text:
            draft.after = files.encoded(edited, draft.before)
    return [draft for draft in made.values() if draft.changes]


def write(drafts: list[Draft]) -> list[Done]:
    """Make it so. If one file cannot be written, those before it are put back."""
    done: list[Done] = []
    try:
        for draft in drafts:
            if files.read(draft.path) != draft.before:  # somebody has written it while this was being looked at
                again = drafted((draft.path, edit) for edit in draft.edits)
                if not again:
                    continue
                draft = again[0]
            assert draft.after is not None
            backup = "" if draft.before is None else files.back_up(draft.path, draft.before)
            done.append(Done(draft.path, draft.before is not None, files.digest(draft.after), draft.undo, backup))
            done[-1].folders = files.write(draft.path, draft.after)
    except BaseException:
        revert(done)
        raise
    return done


def revert(done: Iterable[Done]) -> None:
    """Put back what has just been written."""
    for one in reversed(list(done)):
        with contextlib.suppress(files.Untouchable, OSError):
            before = files.read(one.backup) if one.existed else None
            if before is not None and files.read(one.path) != before:
                files.write(one.path, before)
            if not one.existed:
                files.remove(one.path, one.folders)
            if one.backup:
                os.unlink(one.backup)


# ── taking back ──────────────────────────────────────────────────────────────────────────────────


class Return(msgspec.Struct):
    """The way back of one run: its files as they will be, and the backups that are needed no more."""

    drafts: list[Draft]
    folders: dict[str, list[str]]
    spent: list[str]
    remarks: list[str]


def way_back(done: Iterable[Done]) -> Return:
    """The files as they were before, the last edit first. Where somebody else has written since, only what was ours
    goes."""
    now: dict[str, bytes | None] = {}
    back = Return([], {}, [], [])
    for one in reversed(list(done)):
        found = now[one.path] if one.path in now else files.read(one.path)
        exact = found is not None and files.digest(found) == one.digest
        before = files.read(one.backup) if exact and one.backup else None
        back.folders[one.path] = one.folders
        if found is None or (exact and not one.existed):
            now[one.path] = None
        elif before is not None:
            now[one.path] = before
            back.spent.append(one.backup)
        else:
            now[one.path] = _without_ours(one, found)
            kept = f" As it was: {one.backup}" if one.backup else ""
            back.remarks.append(f"{one.path} was written by others since, so only our part was taken out.{kept}")
    back.drafts = [Draft(path, files.read(path), data) for path, data in now.items()]
    return back


def _without_ours(one: Done, found: bytes) -> bytes | None:
    drafts = drafted(((one.path, edit) for edit in one.undo), {one.path: found})
    left = drafts[0].after if drafts else found
    return None if not one.existed and (left or b"").strip() in (b"", b"{}") else left


def go_back(back: Return) -> None:
    for draft in back.drafts:
        if draft.before is not None and draft.after is None:
            files.remove(draft.path, back.folders[draft.path])
            if files.read(draft.path) is not None:
                raise files.Untouchable(f"{draft.path} cannot be removed. Is its folder writable?")
        elif draft.after is not None and draft.changes:
            files.write(draft.path, draft.after)
    for backup in back.spent:
        with contextlib.suppress(OSError):
            os.unlink(backup)


# ── showing ──────────────────────────────────────────────────────────────────────────────────────


def diff(before: list[str], after: list[str]) -> Iterator[str]:
    """A unified diff. What is the same at both ends is not even compared: such files may have 100,000 lines."""
    skipped = _same(before, after)
    ending = _same(before[skipped:][::-1], after[skipped:][::-1])
    first = max(0, skipped - CONTEXT)
    until = max(0, ending - CONTEXT)
    old, new = before[first : len(before) - until], after[first : len(after) - until]
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT):
        begin, end = group[0], group[-1]
        yield f"@@ -{_span(begin[1], end[2], first)} +{_span(begin[3], end[4], first)} @@"
        for tag, i, j, k, m in group:
            if tag == "equal":
                yield from (f" {line}" for line in old[i:j])
            else:
                yield from (f"-{line}" for line in old[i:j])
                yield from (f"+{line}" for line in new[k:m])


def _span(start: int, end: int, first: int) -> str:
    return f"{first + start + (1 if end > start else 0)},{end - start}"


def _same(one: list[str], other: list[str]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _narrow(line: str) -> str:
    return line if len(line) <= WIDEST else line[: WIDEST - 1] + "…"
