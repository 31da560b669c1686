"""Pack the bundle that desktop clients install with a click: `.venv-dev/bin/python scripts/bundle.py [FOLDER]`.

An .mcpb file is a zip: release/mcpb/manifest.json with the version and the tools of this moment, our wheel, and a
project that asks for it; the client's uv installs what the wheel needs, in the versions of requirements/run.txt.
Equal sources make an equal file. It needs the package and hatchling (`.venv-dev` has both)."""

import json
import sys
import tempfile
import zipfile
from pathlib import Path

from environment import CHECKOUT
from footprint import PACKAGES, versions, wheel_of

from mcp_memory import __version__
from mcp_memory.tools.catalog import catalog

PROJECT = """\
[project]
name = "mcp-memory-bundle"
version = "{version}"
requires-python = ">=3.11"
dependencies = ["mcp-memory"]

[tool.uv]
package = false
constraint-dependencies = [
{versions}
]

[tool.uv.sources]
mcp-memory = {{ path = "{wheel}" }}
"""
SERVER = '''\
"""What a client starts; the program itself is in the wheel beside."""

import sys

from mcp_memory.server import main

sys.exit(main())
'''
# Zip knows no time before it.
EPOCH = (1980, 1, 1, 0, 0, 0)


def manifest() -> str:
    """The manifest, with what the code knows better."""
    said = json.loads((CHECKOUT / "release" / "mcpb" / "manifest.json").read_text(encoding="utf-8"))
    tools = [{"name": tool.name, "description": tool.description} for tool in catalog("full").values()]
    made = {"manifest_version": said.pop("manifest_version"), "name": said.pop("name"), "version": __version__}
    return json.dumps({**made, **said, "tools": tools, "tools_generated": True}, indent=2, ensure_ascii=False) + "\n"


def project(wheel: str) -> str:
    pinned = "\n".join(f"    {json.dumps(line)}," for line in versions().splitlines())
    return PROJECT.format(version=__version__, versions=pinned, wheel=wheel)


def pack(folder: Path) -> Path:
    """Write the bundle into this folder."""
    with tempfile.TemporaryDirectory() as temporary:
        wheel = wheel_of(PACKAGES[0], Path(temporary))
        contents = {
            "manifest.json": manifest().encode(),
            "pyproject.toml": project(wheel.name).encode(),
            "server.py": SERVER.encode(),
            "LICENSE": (CHECKOUT / "LICENSE").read_bytes(),
            wheel.name: wheel.read_bytes(),
        }
    folder.mkdir(parents=True, exist_ok=True)
    bundle = folder / f"mcp-memory-{__version__}.mcpb"
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in contents.items():
            packed.writestr(zipfile.ZipInfo(name, EPOCH), content, zipfile.ZIP_DEFLATED)
    return bundle


if __name__ == "__main__":
    print(pack(Path(sys.argv[1]) if len(sys.argv) > 1 else CHECKOUT / "dist"))
