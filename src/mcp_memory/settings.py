"""What a user may choose. Each choice is one field, documented here and nowhere else.

The first source that names a setting decides it: a flag, an environment variable, the settings file,
the default. `--help` and docs/settings.md are written from these fields.

Annotations here are values, not strings: they are read at every start, and resolving strings would
cost more than all the rest of this module. The command line is read by hand for the same reason:
argparse takes 2 ms to import where the whole start should take 60."""

import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from mcp_memory.facts import OFFICIAL_LIMITS, Customs, Limits

DEFAULT_FILE = "~/.config/mcp-memory/settings.toml"
PREFIX = "MCP_MEMORY_"
# Options that are no settings and belong to no command.
SWITCHES = {"--help": "help", "-h": "help", "--version": "version"}
Count = Annotated[int, Meta(ge=1)]
Threshold = Annotated[str, Meta(pattern=r"^.*\S.*=\s*[1-9][0-9]{0,8}$")]


class BadSetting(Exception):
    """A choice that cannot be followed; the text says where it stands and what would do."""


def _limit(most: str) -> Any:
    standard, official = getattr(Limits(), most), getattr(OFFICIAL_LIMITS, most)
    otherwise = f" ({official} in the official profile)" if official != standard else ""
    return {"value": "N", "default": f"{standard}{otherwise}"}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Every choice, with its default."""

    memory_file: Annotated[
        str,
        Meta(
            description="Where the facts live. A new file gets its format from its suffix: .jsonl or .json is the "
            "file of the official server, .mcpmem the journal of the Rust server, anything else an SQLite database. "
            "An existing file is recognised by what is in it.",
            extra={"short": "-f", "env": "MEMORY_FILE_PATH", "value": "FILE"},
        ),
    ] = "~/.config/opencode/mcp-memory/memory.db"
    profile: Annotated[
        Literal["full", "core", "official"],
        Meta(
            description="What a client is offered: every tool; a small set for clients that pay for each tool; or "
            "exactly the nine tools of the official memory server, with its answers.",
        ),
    ] = "full"
    tools: Annotated[
        tuple[str, ...],
        Meta(
            description="Offer only these families of tools, as docs/tools.md names them. Everything the profile "
            "has, if none is given.",
            extra={"value": "FAMILY,...", "separator": ",", "default": "all families"},
        ),
    ] = ()
    read_only: Annotated[bool, Meta(description="Hide the tools that write, and refuse to write.")] = False
    durability: Annotated[
        Literal["normal", "sync"],
        Meta(
            description="What an acknowledged write survives: the death of the process (normal), or also a power cut "
            "(sync, which waits for the disk at each write).",
        ),
    ] = "normal"
    transport: Annotated[
        Literal["stdio", "tcp", "http"],
        Meta(
            description="How clients reach the server: one client on standard input and output, many over TCP with a "
            "message a line, or many over HTTP at /mcp (MCP Streamable HTTP)."
        ),
    ] = "stdio"
    bind: Annotated[
        str,
        Meta(
            description="The address for tcp and http. One that other computers can reach is refused without a token "
            "(see --allow-unauthenticated).",
            extra={"value": "HOST:PORT"},
        ),
    ] = "127.0.0.1:8080"
    auth_token: Annotated[
        str,
        Meta(
            description="The token that a client must show: over HTTP as Authorization: Bearer, over TCP as the first "
            "line. Other users of this computer can see options; they cannot see a variable or a file.",
            extra={"value": "TOKEN", "default": "none"},
        ),
    ] = ""
    auth_token_file: Annotated[
        str,
        Meta(
            description="A file that holds one token and nothing else, or the list of tokens that `mcp-memory token` "
            "writes. A list that is changed holds within a second.",
            extra={"value": "FILE", "default": "none"},
        ),
    ] = ""
    allow_unauthenticated: Annotated[
        bool,
        Meta(
            description="Listen at an address that other computers can reach although nobody has to show a token. "
            "Whoever reaches the port may then read and change everything."
        ),
    ] = False
    tls_cert: Annotated[
        str,
        Meta(
            description="A certificate with its chain, in PEM: tcp and http are then served over TLS only. Renewed "
            "files are noticed.",
            extra={"value": "FILE", "default": "none"},
        ),
    ] = ""
    tls_key: Annotated[
        str,
        Meta(
            description="The private key of the certificate, in PEM, where it is not in the same file.",
            extra={"value": "FILE", "default": "none"},
        ),
    ] = ""
    public_url: Annotated[
        str,
        Meta(
            description="The address of the MCP endpoint as clients know it, such as https://memory.example/mcp. Its "
            "name is allowed as a Host, and an OAuth token must be meant for it.",
            extra={"value": "URL", "default": "the address listened on"},
        ),
    ] = ""
    oauth_issuer: Annotated[
        str,
        Meta(
            description="The authorization server whose access tokens (JWT) are accepted, exactly as their `iss` "
            "names it. Needs `pip install mcp-memory[oauth]`.",
            extra={"value": "URL", "default": "none"},
        ),
    ] = ""
    oauth_audience: Annotated[
        str,
        Meta(
            description="The `aud` that an OAuth token must name.",
            extra={"value": "TEXT", "default": "the public URL"},
        ),
    ] = ""
    oauth_jwks: Annotated[
        str,
        Meta(
            description="Where the keys of the authorization server are: a URL, or a file.",
            extra={"value": "URL|FILE", "default": "what the issuer's metadata names"},
        ),
    ] = ""
    oauth_scope_prefix: Annotated[
        str,
        Meta(
            description="What stands before read, write and admin in the scopes of OAuth tokens, such as `memory:`.",
            extra={"value": "TEXT", "default": "nothing"},
        ),
    ] = ""
    rate_limit: Annotated[
        int,
        Meta(
            ge=1,
            description="The most requests a second with one token, on average; twice as many may come at once.",
            extra={"value": "N"},
        ),
    ] = 1000
    max_parallel: Annotated[
        int,
        Meta(
            ge=1,
            description="The most long calls at a time with one token, and the most event streams.",
            extra={"value": "N"},
        ),
    ] = 64
    compress_from: Annotated[
        int,
        Meta(
            ge=1,
            description="HTTP answers from so many bytes on are sent compressed to clients that take gzip.",
            extra={"value": "BYTES"},
        ),
    ] = 16384
    audit: Annotated[
        Literal["off", "refusals", "writes", "calls"],
        Meta(
            description="What tcp and http tell on stderr about who asks: nobody, who is refused, also who writes, "
            "or every call. Names of tokens and tools, never a token and never what a call holds.",
        ),
    ] = "refusals"
    allowed_hosts: Annotated[
        tuple[str, ...],
        Meta(
            description="Names, besides those of this computer, by which HTTP requests may call the server (their Host "
            "header), with or without a port.",
            extra={"value": "NAME,...", "separator": ",", "default": "none"},
        ),
    ] = ()
    allowed_origins: Annotated[
        tuple[str, ...],
        Meta(
            description="Web origins, besides this computer's, whose pages may send HTTP requests, such as "
            "https://example.org.",
            extra={"value": "ORIGIN,...", "separator": ",", "default": "none"},
        ),
    ] = ()
    max_connections: Annotated[
        int,
        Meta(ge=1, description="The most TCP or HTTP connections at a time.", extra={"value": "N"}),
    ] = 128
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="How much is told on stderr."),
    ] = "warning"
    roots: Annotated[
        tuple[str, ...],
        Meta(
            description="Folders that a tool may read files from and write files to. Paths outside are refused, and "
            "so are links that lead outside. Several are written as in PATH.",
            extra={"value": "FOLDERS", "separator": os.pathsep, "default": "the home and the working folder"},
        ),
    ] = ()
    model: Annotated[
        str,
        Meta(
            description="What turns texts into meaning: auto (the documented model where it was downloaded, else the "
            "one this program comes with), none, a name that mcp-memory model lists, or a folder with a model.onnx and "
            "its tokenizer.json. After a change everything is embedded anew behind the calls.",
            extra={"value": "MODEL"},
        ),
    ] = "auto"
    require_model: Annotated[
        bool,
        Meta(description="Let search_semantic fail where there is no model, instead of answering by words alone."),
    ] = False
    confirm_above: Annotated[
        int,
        Meta(
            ge=0,
            description="A call that would delete or merge away more facts than these has the user asked first, where "
            "the client can ask. 0: never.",
            extra={"value": "N"},
        ),
    ] = 50
    history_days: Annotated[
        Count | None,
        Meta(
            description="How many days of history, up to the last call, `compact` keeps. What is older stays known, "
            "but not how it came about, and it cannot be undone any more.",
            extra={"value": "DAYS", "default": "all"},
        ),
    ] = None
    history_calls: Annotated[
        Count | None,
        Meta(
            description="How many of the last calls `compact` keeps as history; with history_days, what both allow.",
            extra={"value": "N", "default": "all"},
        ),
    ] = None
    no_query_log: Annotated[
        bool,
        Meta(
            description="Write down no query. Searches then leave counts of what was shown and used, but no text; "
            "`metrics` and `tune` have nothing to go by."
        ),
    ] = False
    query_log: Annotated[
        int,
        Meta(ge=1, description="How many searches the log keeps; the oldest go first.", extra={"value": "N"}),
    ] = 5000
    authors: Annotated[
        tuple[str, ...],
        Meta(
            description="Who may sign reflections; * lets anybody.",
            extra={"value": "NAME,...", "separator": ",", "default": "nolan,sofia"},
        ),
    ] = Customs().authors
    moods: Annotated[
        tuple[str, ...],
        Meta(
            description="The moods that a reflection may be in; * allows any.",
            extra={"value": "MOOD,...", "separator": ",", "default": ",".join(Customs().moods)},
        ),
    ] = Customs().moods
    split_thresholds: Annotated[
        tuple[Threshold, ...],
        Meta(
            description="Beyond how many observations an entity of a type may be too large; * is every other type.",
            extra={"value": "TYPE=N,...", "separator": ",", "default": "Sesion=15,Proyecto=25,*=20"},
        ),
    ] = ()
    heavy_tool_max_concurrency: Annotated[
        int,
        Meta(ge=1, description="How many heavy maintenance calls may run at a time.", extra={"value": "N"}),
    ] = 1
    heavy_tool_acquire_timeout_seconds: Annotated[
        float,
        Meta(
            ge=0,
            description="How long a heavy maintenance call waits for its turn before it is sent away.",
            extra={"value": "SECONDS"},
        ),
    ] = 2.0
    max_entities: Annotated[
        Count | None,
        Meta(description="The most entities that one call may create or name.", extra=_limit("entities")),
    ] = None
    max_relations: Annotated[
        Count | None,
        Meta(description="The most relations that one call may create or name.", extra=_limit("relations")),
    ] = None
    max_observations: Annotated[
        Count | None,
        Meta(description="The most observations of one entity in one call.", extra=_limit("observations")),
    ] = None
    max_observation_chars: Annotated[
        Count | None,
        Meta(description="The longest observation, in characters.", extra=_limit("observation_chars")),
    ] = None
    max_query_chars: Annotated[
        Count | None,
        Meta(description="The longest search query, in characters.", extra=_limit("query_chars")),
    ] = None
    max_results: Annotated[
        Count | None,
        Meta(description="The most results that one search may ask for.", extra=_limit("results")),
    ] = None
    max_reflection_chars: Annotated[
        Count | None,
        Meta(description="The longest reflection, in characters.", extra=_limit("reflection_chars")),
    ] = None

    @property
    def path(self) -> str:
        """The memory file, absolute."""
        return full_path(self.memory_file)

    @property
    def allowed_roots(self) -> tuple[str, ...]:
        return tuple(map(full_path, self.roots or ("~", ".")))

    @property
    def customs(self) -> Customs:
        """What the people of this space have agreed on."""
        authors, moods = (() if "*" in names else names for names in (self.authors, self.moods))
        said = (threshold.rpartition("=") for threshold in self.split_thresholds)
        thresholds = {entity_type.strip(): int(number) for entity_type, _, number in said}
        return Customs(authors, moods, {**Customs().split_thresholds, **thresholds})

    @property
    def limits(self) -> Limits:
        """The limits of the profile, with what was chosen differently."""
        limits = OFFICIAL_LIMITS if self.profile == "official" else Limits()
        chosen = {most: getattr(self, f"max_{most}") for most in Limits.__struct_fields__}
        return msgspec.structs.replace(limits, **{most: n for most, n in chosen.items() if n is not None})


class Field:
    """One setting as its three sources know it."""

    __slots__ = ("default", "env", "flag", "hint", "kind", "meta", "name", "said")

    def __init__(self, name: str, hint: Any, default: Any) -> None:
        self.name = name
        self.hint = hint
        self.kind: Any = hint.__origin__
        self.meta: Meta = hint.__metadata__[0]
        self.said: dict[str, str] = self.meta.extra or {}
        self.flag = "--" + name.replace("_", "-")
        self.env = self.said.get("env") or PREFIX + name.upper()
        self.default = self.said.get("default", default)

    @property
    def choices(self) -> tuple[str, ...]:
        return getattr(self.kind, "__args__", ()) if getattr(self.kind, "__origin__", None) is Literal else ()

    @property
    def value(self) -> str:
        """What stands for the value in a help text; nothing for a yes-or-no."""
        if self.kind is bool:
            return ""
        return self.said.get("value") or "|".join(self.choices)

    def read(self, given: Any, source: str) -> Any:
        """The value, whether it came as text or from a TOML file."""
        if isinstance(given, str) and "separator" in self.said:
            given = [part.strip() for part in given.split(self.said["separator"]) if part.strip()]
        try:
            return msgspec.convert(given, self.hint, strict=False)
        except msgspec.ValidationError as fault:
            expected = f"one of {', '.join(self.choices)}" if self.choices else EXPECTED.get(self.kind, str(fault))
            raise BadSetting(f"{source} cannot be {given!r}: it must be {expected}.") from fault


EXPECTED = {
    bool: "true or false",
    int: "a whole number from 1 up",
    float: "a number from 0 up",
    str: "text",
    Count | None: "a whole number from 1 up",
    tuple[str, ...]: "a list of texts",
    tuple[Threshold, ...]: "a list of TYPE=N, with N from 1 up",
}
FIELDS = {
    name: Field(name, hint, default)
    for (name, hint), default in zip(Settings.__annotations__.items(), Settings.__struct_defaults__, strict=True)
}
FLAGS = {field.flag: field for field in FIELDS.values()} | {
    field.said["short"]: field for field in FIELDS.values() if "short" in field.said
}


class Request(msgspec.Struct, frozen=True):
    """What the command line asks for: settings, words (the command and what it works on), switches, and as they
    were typed the options of commands, the settings among them, and all of it; beside it where the settings file
    is, or would be."""

    settings: Settings
    words: list[str]
    switches: frozenset[str]
    options: dict[str, str]
    file: str
    given: tuple[str, ...]
    flags: dict[str, str] = {}


def read(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Request:
    """The command line, completed by the environment and the settings file."""
    flags, words, switches, options = _command_line(arguments)
    named = flags.get("settings") or environment.get(PREFIX + "SETTINGS")
    file = full_path(named or DEFAULT_FILE)
    chosen = _from_file(file, must_exist=bool(named))
    for name, field in FIELDS.items():
        if name in flags:
            chosen[name] = field.read(flags[name], field.flag)
        elif environment.get(field.env):  # set but empty is how many clients write "not set"
            chosen[name] = field.read(environment[field.env], field.env)
    return Request(Settings(**chosen), words, frozenset(switches), options, file, tuple(arguments), flags)


def full_path(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))


def _command_line(arguments: Sequence[str]) -> tuple[dict[str, str], list[str], set[str], dict[str, str]]:
    flags: dict[str, str] = {}
    words: list[str] = []
    switches: set[str] = set()
    options: dict[str, str] = {}
    left = list(arguments)
    while left:
        token = left.pop(0)
        if token == "--":
            words += left
            break
        if token in SWITCHES:
            switches.add(SWITCHES[token])
        elif token.startswith("-") and token != "-":
            flag, value = _parted(token)
            if flag in FLAGS or flag == "--settings":
                name, value = _setting(flag, value, left)
                flags[name] = value
            else:
                name, value = _option(flag, value, left)
                options[name] = value
        else:
            words.append(token)
    return flags, words, switches, options


def _parted(token: str) -> tuple[str, str | None]:
    """`--name`, `--name=value`, `-n` or `-nvalue`."""
    if not token.startswith("--") and len(token) > 2:
        return token[:2], token[2:]
    flag, has_value, value = token.partition("=")
    return flag, value if has_value else None


def _setting(flag: str, value: str | None, left: list[str]) -> tuple[str, str]:
    field = FLAGS.get(flag)
    if field is not None and field.kind is bool:
        return field.name, "true" if value is None else value
    return field.name if field else "settings", _value(flag, value, left)


def _option(flag: str, value: str | None, left: list[str]) -> tuple[str, str]:
    """An option that only some command understands."""
    from mcp_memory.commands import OPTIONS

    if flag not in OPTIONS:
        near = _near(flag, [*FLAGS, *SWITCHES, *OPTIONS])
        raise BadSetting(f"There is no option {flag}{near}. mcp-memory --help lists them.")
    name, option = OPTIONS[flag]
    if option.value:
        return name, _value(flag, value, left)
    if value is not None:
        raise BadSetting(f"{flag} takes no value; it says yes by being there.")
    return name, ""


def _value(flag: str, value: str | None, left: list[str]) -> str:
    if value is not None:
        return value
    if not left:
        raise BadSetting(f"{flag} needs a value after it.")
    return left.pop(0)


def _from_file(path: str, must_exist: bool) -> dict[str, Any]:
    if not os.path.exists(path):
        if must_exist:
            raise BadSetting(f"There is no settings file {path}. Create it or leave --settings out.")
        return {}
    import tomllib

    try:
        with open(path, "rb") as file:
            said = tomllib.load(file)
    except (OSError, ValueError, RecursionError) as fault:
        raise BadSetting(f"The settings file {path} cannot be read: {fault}") from fault
    for name in said:
        if name not in FIELDS:
            raise BadSetting(f"{path}: there is no setting {name}{_near(name, list(FIELDS))}.")
    return {name: FIELDS[name].read(value, f"{path}: {name}") for name, value in said.items()}


def _near(name: str, names: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, names, 1)
    return f"; did you mean {near[0]}" if near else ""
