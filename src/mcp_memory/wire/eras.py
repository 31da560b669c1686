"""What each revision of the protocol knows: tables.

Two families: the revisions with a handshake (`initialize`, then state), and the stateless one in which
every request says its version. A new revision is a new row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

# Fields that came, or went again, after the first revision; a field not named here was always there.
SINCE: Mapping[str, Mapping[str, str]] = {
    "tool": {
        "annotations": "2025-03-26",
        "title": "2025-06-18",
        "outputSchema": "2025-06-18",
        "_meta": "2025-06-18",
        "icons": "2025-11-25",
        "execution": "2025-11-25",
    },
    "resource": {"size": "2025-03-26", "title": "2025-06-18", "_meta": "2025-06-18", "icons": "2025-11-25"},
    "template": {"title": "2025-06-18", "_meta": "2025-06-18", "icons": "2025-11-25"},
    "prompt": {"title": "2025-06-18", "_meta": "2025-06-18", "icons": "2025-11-25"},
    "argument": {"title": "2025-06-18"},
    "capability": {"completions": "2025-03-26", "extensions": "2025-11-25"},
    "server": {
        "title": "2025-06-18",
        "description": "2025-11-25",
        "websiteUrl": "2025-11-25",
        "icons": "2025-11-25",
    },
    "progress": {"message": "2025-03-26"},
}
UNTIL: Mapping[str, Mapping[str, str]] = {
    "tool": {"execution": "2025-11-25"},
    "capability": {"logging": "2025-11-25"},  # since then each request says what it wants to be told
}

PLAIN = frozenset({"tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read"})
ALWAYS = PLAIN | {"prompts/list", "prompts/get", "completion/complete", "skills/list", "skills/get"}
SUBSCRIBING = frozenset({"initialize", "ping", "resources/subscribe", "resources/unsubscribe"})
HANDSHAKE = ALWAYS | SUBSCRIBING | {"logging/setLevel"}
STATELESS = ALWAYS | {"server/discover", "subscriptions/listen"}

NOTHING, OBJECTS, ANYTHING = range(3)


class Era(msgspec.Struct, frozen=True):
    """One revision as one side speaks it."""

    version: str
    methods: frozenset[str]
    stateless: bool = False
    batches: bool = False
    structured: int = OBJECTS  # what `structuredContent` may hold
    no_such_resource: int = -32002
    fields_of: str = ""  # the revision whose fields are sent, if not this one's

    def known(self, kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that a client of this revision expects."""
        now = self.fields_of or self.version
        since, until = SINCE[kind], UNTIL.get(kind, {})
        return {name: its for name, its in fields.items() if since.get(name, "") <= now <= until.get(name, now)}


ERAS: tuple[Era, ...] = (
    Era("2024-11-05", HANDSHAKE, structured=NOTHING),
    Era("2025-03-26", HANDSHAKE, structured=NOTHING, batches=True),
    Era("2025-06-18", HANDSHAKE),
    Era("2025-11-25", HANDSHAKE),
    Era("2026-07-28", STATELESS, stateless=True, structured=ANYTHING, no_such_resource=-32602),
)
# The official server shakes hands for every revision up to its newest and then sends the same to all.
OFFICIAL: tuple[Era, ...] = tuple(
    Era(era.version, PLAIN | SUBSCRIBING, no_such_resource=-32602, fields_of="2025-11-25")
    for era in ERAS
    if not era.stateless
)

STATELESS_VERSIONS = [era.version for era in ERAS if era.stateless]
STATELESS_ERAS = {era.version: era for era in ERAS if era.stateless}
STATELESS_ONLY = STATELESS - HANDSHAKE
# `initialize` is answered with the asked revision, or with the newest that shakes hands.
HANDSHAKE_ERAS = {era.version: era for era in ERAS if not era.stateless}
OFFICIAL_ERAS = {era.version: era for era in OFFICIAL}
NEWEST_HANDSHAKE = "2025-11-25"
