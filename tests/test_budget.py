"""What every conversation pays before a word is said: the list of tools, by profile, in bytes."""

from __future__ import annotations

import msgspec
import pytest

from mcp_memory.tools.catalog import catalog
from mcp_memory.wire.offer import described

# The official server's own list takes 10,750 bytes.
BUDGETS = {"official": 11_000, "core": 8_000, "full": 20_500}
MOST_DESCRIPTION = 320


@pytest.mark.parametrize(("profile", "most"), BUDGETS.items())
def test_a_profile_keeps_its_budget(profile: str, most: int) -> None:
    listed = [described(tool) for tool in catalog(profile).values()]

    assert len(msgspec.json.encode({"tools": listed})) <= most


@pytest.mark.parametrize("profile", BUDGETS)
def test_every_tool_says_what_it_is_for_in_few_words(profile: str) -> None:
    for tool in catalog(profile).values():
        description = described(tool)["description"]
        assert 20 < len(description) <= MOST_DESCRIPTION, tool.name


@pytest.mark.parametrize("profile", BUDGETS)
def test_schemas_are_plain_objects_without_references(profile: str) -> None:
    for tool in catalog(profile).values():
        schema = described(tool)["inputSchema"]
        assert schema["type"] == "object"
        assert b"$ref" not in msgspec.json.encode(schema)
        assert b"$defs" not in msgspec.json.encode(schema)
