"""The pages on security and deployment: each threat names a test that exists, each configuration is well formed, its
options are ours, and what the proxies are told to send is what a server with those options takes."""

from __future__ import annotations

import ast
import configparser
import functools
import http.client
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcp_memory.commands import COMMANDS
from mcp_memory.settings import FIELDS, Request, read
from tests.peers import ROOT
from tests.wire.network import HELLO, Server, request, running

SECURITY = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
DEPLOYMENT = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
BY_ENV = {field.env: field for field in FIELDS.values()}
TOKEN = "a-token-of-some-length"


def blocks(kind: str) -> list[str]:
    """What stands between fences of this kind on the page on deployment."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", DEPLOYMENT, re.MULTILINE | re.DOTALL)


# ── security ─────────────────────────────────────────────────────────────────────────────────────


def threats() -> list[tuple[str, list[str]]]:
    rows = [line.strip("|").split("|") for line in SECURITY.splitlines() if line.startswith("| ")]
    named = [(row[0].strip(), re.findall(r"`([\w/]+\.py::\w+)`", row[-1])) for row in rows]
    return [(threat, tests) for threat, tests in named if threat != "Somebody"]


@functools.cache
def named_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_the_page_on_security_has_its_threats() -> None:
    assert len(threats()) > 25


@pytest.mark.parametrize(("threat", "tests"), threats(), ids=lambda value: value if isinstance(value, str) else "")
def test_every_threat_names_tests_that_exist(threat: str, tests: list[str]) -> None:
    assert tests
    for test in tests:
        file, _, name = test.partition("::")
        assert (ROOT / file).is_file(), test
        assert name in named_in(file), test


# ── deployment: is every configuration ours, and well formed? ────────────────────────────────────


def commands() -> list[str]:
    """Every line that starts our program, in shells and in units."""
    shells = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("mcp-memory ")]
    return shells + re.findall(r"^ExecStart=(.*)$", DEPLOYMENT, re.MULTILINE)


def settled(command: str, **environment: str) -> Request:
    """The command as the program reads it; it raises where an option or a value is not one."""
    settings = {"MCP_MEMORY_SETTINGS": str(ROOT / "tests" / "peers" / "settings.toml")}
    return read(shlex.split(command)[1:], {**settings, **environment})


@pytest.mark.parametrize("command", commands())
def test_every_command_is_one_with_options_that_it_has(command: str) -> None:
    asked = settled(command)

    name = asked.words[0] if asked.words else "serve"
    assert name in COMMANDS
    assert asked.options.keys() <= COMMANDS[name].options.keys()


def chosen(pairs: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in pairs.items() if name.startswith(("MCP_", "MEMORY_"))}


def units() -> list[configparser.ConfigParser]:
    made = []
    for block in blocks("ini"):
        unit = configparser.ConfigParser(strict=False, interpolation=None)
        unit.optionxform = str  # type: ignore[assignment, method-assign]
        unit.read_string(block)
        made.append(unit)
    return made


def unit_environment(block: str) -> dict[str, str]:
    return chosen(dict(pair.split("=", 1) for pair in re.findall(r"^Environment=(.*)$", block, re.MULTILINE)))


def test_the_units_are_of_systemds_form_and_set_only_settings() -> None:
    assert [set(unit.sections()) for unit in units()] == [
        {"Unit", "Service", "Install"},
        {"Unit", "Service"},
        {"Unit", "Timer", "Install"},
    ]
    for block in blocks("ini")[:2]:
        environment = unit_environment(block)
        assert environment.keys() <= BY_ENV.keys()
        assert settled("mcp-memory", **environment).settings.memory_file == "/var/lib/mcp-memory/memory.db"
    assert units()[0]["Service"]["ExecStart"].split()[0] == units()[1]["Service"]["ExecStart"].split()[0]


def test_compose_starts_what_the_image_is_and_sets_only_settings() -> None:
    compose, metrics = yaml.safe_load(blocks("yaml")[1]), yaml.safe_load(blocks("yaml")[0])
    service = compose["services"]["memory"]
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")

    settings = settled("mcp-memory", **chosen(service["environment"])).settings
    assert settings.transport == "http" and settings.auth_token_file
    assert service["environment"].keys() <= BY_ENV.keys()
    assert service["volumes"] == ["memory:/data"] and "VOLUME /data" in image
    assert service["ports"] == ["127.0.0.1:8080:8080"] and "EXPOSE 8080" in image
    assert set(service["secrets"]) == compose["secrets"].keys() and "memory" in compose["volumes"]
    assert metrics["scrape_configs"][0]["authorization"]["credentials_file"]


@pytest.mark.parametrize("kind", ["nginx", "caddy"])
def test_the_proxies_hand_on_what_clients_need(kind: str) -> None:
    (block,) = blocks(kind)

    assert block.count("{") == block.count("}") > 1
    assert "127.0.0.1:8080" in block and "memory.example" in block and "/mcp" in block
    assert "/.well-known/oauth-protected-resource" in block
    assert re.search(r"max_body_size 16m|max_size 16MB", block)
    assert re.search(r"proxy_buffering off|flush_interval -1", block)
    assert not re.search(r"healthz|readyz|metrics", block)


def test_the_python_on_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = blocks("python")
    started: list[dict[str, Any]] = []
    monkeypatch.setattr("fastmcp.FastMCP.run", lambda self, **options: started.append(options))
    monkeypatch.chdir(tmp_path)

    exec(compile(block, "docs/deployment.md", "exec"), {})
    assert started == [{"transport": "http"}]


def test_every_kind_of_block_is_looked_at() -> None:
    assert set(re.findall(r"^```(\w+)$", DEPLOYMENT, re.MULTILINE)) == {
        *("sh", "ini", "yaml", "nginx", "caddy", "python")
    }


# ── deployment: does it do what the page says? ───────────────────────────────────────────────────


@pytest.fixture
def behind_a_proxy(tmp_path: Path) -> Any:
    """A server with the variables of the unit, but for its places."""
    places = {
        "MEMORY_FILE_PATH": str(tmp_path / "memory.db"),
        "MCP_MEMORY_AUTH_TOKEN_FILE": str(tmp_path / "tokens"),
        "MCP_MEMORY_ROOTS": str(tmp_path),
    }
    (tmp_path / "tokens").write_text(TOKEN, encoding="ascii")
    environment = {**unit_environment(blocks("ini")[0]), **places}
    with running(Server("-m", "mcp_memory", **environment)) as server:
        yield server


def asked(server: Server, path: str, host: str, *, origin: str = "", body: bytes | None = None) -> int:
    """The status of a request as a proxy hands it on."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"Host": host, "Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    headers["Accept"] = "application/json, text/event-stream"
    connection.request("POST" if body else "GET", path, body, {**headers, **({"Origin": origin} if origin else {})})
    status = connection.getresponse().status
    connection.close()
    return status


def test_a_server_behind_the_proxies_answers_to_its_public_name(behind_a_proxy: Server) -> None:
    hello = request("initialize", **HELLO)

    assert asked(behind_a_proxy, "/mcp", "memory.example", body=hello) == 200
    assert asked(behind_a_proxy, "/mcp", "other.example", body=hello) == 403
    assert asked(behind_a_proxy, "/mcp", "memory.example", origin="https://evil.example", body=hello) == 403
    assert asked(behind_a_proxy, "/metrics", "127.0.0.1:8080") == 200
    assert asked(behind_a_proxy, "/healthz", "localhost") == 200


def test_the_versions_of_the_extras_on_the_page_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    named = re.search(r"Extras: (.*?)\n\n", DEPLOYMENT, re.DOTALL)
    assert named
    assert set(re.findall(r"`(\w+)`", named[1])) == project["optional-dependencies"].keys()
