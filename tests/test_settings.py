"""Settings come from flag, environment, file and default, in this order, and a mistake is explained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcp_memory.facts import OFFICIAL_LIMITS, Limits
from mcp_memory.settings import FIELDS, PREFIX, BadSetting, Settings, read


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "settings.toml"
    file.write_text("", encoding="utf-8")
    return file


@pytest.fixture
def settings(file: Path) -> Any:
    """Read settings as if nothing were set on this machine."""

    def settings(*arguments: str, **environment: str) -> Settings:
        return read([*arguments, f"--settings={file}"], environment).settings

    return settings


def test_without_a_choice_the_documented_defaults_hold(settings: Any) -> None:
    chosen = settings()

    assert chosen.memory_file == "~/.config/opencode/mcp-memory/memory.db"
    assert (chosen.profile, chosen.durability, chosen.transport) == ("full", "normal", "stdio")
    assert chosen.limits == Limits()


def test_a_flag_wins_over_the_environment_and_that_over_the_file(settings: Any, file: Path) -> None:
    file.write_text('profile = "core"\ndurability = "sync"\nlog_level = "debug"\n', encoding="utf-8")

    chosen = settings("--profile", "full", MCP_MEMORY_PROFILE="official", MCP_MEMORY_DURABILITY="normal")

    assert (chosen.profile, chosen.durability, chosen.log_level) == ("full", "normal", "debug")


def test_the_memory_file_comes_from_the_variable_of_the_official_server(settings: Any) -> None:
    assert settings(MEMORY_FILE_PATH="a.jsonl").memory_file == "a.jsonl"
    assert settings("-f", "b.db", MEMORY_FILE_PATH="a.jsonl").memory_file == "b.db"


def test_an_empty_variable_is_no_choice(settings: Any) -> None:
    assert settings(MEMORY_FILE_PATH="", MCP_MEMORY_PROFILE="").profile == "full"


@pytest.mark.parametrize("written", [["-f", "x.db"], ["-fx.db"], ["--memory-file", "x.db"], ["--memory-file=x.db"]])
def test_an_option_may_be_written_in_every_usual_way(settings: Any, written: list[str]) -> None:
    assert settings(*written).memory_file == "x.db"


def test_a_command_line_of_the_rust_server_is_understood(settings: Any) -> None:
    read = settings("-f", "memory.mcpmem", "-t", "http", "-b", "127.0.0.1:9000", "-l", "warn")

    assert (read.memory_file, read.transport, read.bind) == ("memory.mcpmem", "http", "127.0.0.1:9000")
    assert (read.log_level, settings("-ltrace").log_level, settings("-l", "info").log_level) == (
        "warning",
        "debug",
        "info",
    )
    with pytest.raises(BadSetting, match="one of debug, info, warning, error"):
        settings("-l", "loud")


def test_relative_paths_are_taken_from_the_working_folder_and_a_tilde_is_home(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))

    assert settings("-f", "x.db").path == str(tmp_path / "x.db")
    assert settings("-f", "~/x.db").path == str(tmp_path / "home" / "x.db")
    assert settings().allowed_roots == (str(tmp_path / "home"), str(tmp_path))


def test_a_yes_or_no_needs_no_value(settings: Any) -> None:
    assert settings("--read-only").read_only
    assert not settings("--read-only=false").read_only
    assert settings(MCP_MEMORY_READ_ONLY="1").read_only


def test_lists_are_text_on_the_command_line_and_lists_in_the_file(settings: Any, file: Path) -> None:
    assert settings("--tools", "recall, seek").tools == ("recall", "seek")
    file.write_text('tools = ["recall", "seek"]', encoding="utf-8")
    assert settings().tools == ("recall", "seek")


@pytest.mark.parametrize("limit", Limits.__struct_fields__)
def test_every_limit_is_a_setting(settings: Any, limit: str) -> None:
    flag = f"--max-{limit.replace('_', '-')}"

    assert getattr(settings(flag, "7").limits, limit) == 7
    assert settings("--profile=official", flag, "7").limits != OFFICIAL_LIMITS


def test_the_official_profile_has_its_own_limits(settings: Any) -> None:
    assert settings("--profile", "official").limits == OFFICIAL_LIMITS


@pytest.mark.parametrize("name", FIELDS)
def test_every_setting_is_documented_once_and_has_a_variable_of_its_own(name: str) -> None:
    field = FIELDS[name]

    assert (field.meta.description or "").endswith(".")
    assert field.env == ("MEMORY_FILE_PATH" if name == "memory_file" else PREFIX + name.upper())


@pytest.mark.parametrize(
    ("arguments", "explanation"),
    [
        (["--profil=core"], "There is no option --profil; did you mean --profile"),
        (["--profile", "all"], "--profile cannot be 'all': it must be one of full, core, official"),
        (["--max-entities", "0"], "--max-entities cannot be '0': it must be a whole number from 1 up"),
        (["--read-only=perhaps"], "--read-only cannot be 'perhaps': it must be true or false"),
    ],
)
def test_a_mistake_on_the_command_line_is_explained(settings: Any, arguments: list[str], explanation: str) -> None:
    with pytest.raises(BadSetting, match=explanation):
        settings(*arguments)


def test_an_option_without_its_value_is_explained() -> None:
    with pytest.raises(BadSetting, match="-f needs a value"):
        read(["-f"], {})


def test_a_mistake_in_the_environment_names_the_variable(settings: Any) -> None:
    with pytest.raises(BadSetting, match="MCP_MEMORY_MAX_RESULTS cannot be 'many'"):
        settings(MCP_MEMORY_MAX_RESULTS="many")


def test_a_mistake_in_the_file_names_the_file(settings: Any, file: Path) -> None:
    file.write_text("read_onyl = true", encoding="utf-8")
    with pytest.raises(BadSetting, match=r"settings\.toml: there is no setting read_onyl; did you mean read_only"):
        settings()
    file.write_text("read_only = [", encoding="utf-8")
    with pytest.raises(BadSetting, match=r"settings\.toml cannot be read"):
        settings()


def test_a_settings_file_that_was_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="There is no settings file"):
        read([], {"MCP_MEMORY_SETTINGS": str(tmp_path / "missing.toml")})


def test_words_and_the_options_of_commands_are_told_apart_from_settings(file: Path) -> None:
    asked = read(["-f", "x.db", "doctor", "--repair", "--settings", str(file)], {})

    assert asked.words == ["doctor"]
    assert asked.options == {"repair": ""}
