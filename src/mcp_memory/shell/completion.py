"""`mcp-memory completion SHELL`: a script that lets the shell complete what is typed after `mcp-memory`.

Everything in it comes from the tables that the command line itself is read by, so nothing can be offered that is not
understood. The scripts need nothing but the shell: they do not start this program at each press of a key."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator

from mcp_memory.commands import COMMANDS
from mcp_memory.settings import BadSetting, Request
from mcp_memory.shell.words import Flag, Value, arguments, every_flag, first_sentence, options, settings


def completion(request: Request, shell: str) -> int:
    write = SHELLS.get(shell)
    if write is None:
        raise BadSetting(f"There is no completion for {shell!r}. The shells are {', '.join(SHELLS)}.")
    sys.stdout.write("\n".join(write()) + "\n")
    return 0


def _names(flags: Iterable[Flag]) -> str:
    return " ".join(name for flag in flags for name in flag.names)


# ── bash ─────────────────────────────────────────────────────────────────────────────────────────

BASH_WORDS = 'COMPREPLY=($(compgen -W "{}" -- "$current"))'
BASH_FILES = {"files": "_mcp_memory_paths -f", "folders": "_mcp_memory_paths -d"}
BASH_HEAD = """\
# Completion of mcp-memory for bash, 3.2 and newer. To use it:
#     eval "$(mcp-memory completion bash)"

_mcp_memory_paths() {
    local IFS=$'\\n'
    COMPREPLY=($(compgen "$1" -- "$current"))
    compopt -o filenames 2>/dev/null
}

_mcp_memory() {
    local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"
    local command="" place=0 at=1 word
    COMPREPLY=()
    # --option=value comes as three words.
    if [[ $current == "=" ]]; then
        current=""
    elif [[ $before == "=" ]]; then
        before="${COMP_WORDS[COMP_CWORD-2]}"
    fi"""
BASH_WALK = """\
    while [[ $at -lt $COMP_CWORD ]]; do
        word="${{COMP_WORDS[at]}}"
        case "$word" in
            {valued})
                [[ "${{COMP_WORDS[at+1]}}" == "=" ]] && at=$((at + 1))
                at=$((at + 1))
                ;;
            -*|"=") ;;
            *) if [[ -z $command ]]; then command="$word"; else place=$((place + 1)); fi ;;
        esac
        at=$((at + 1))
    done
    if [[ $current == -* ]]; then"""


def bash() -> Iterator[str]:
    valued = {name: flag.value for name, flag in every_flag().items() if flag.value}
    yield BASH_HEAD
    yield '    case "$before" in'
    for value, names in _by_value(valued).items():
        yield f"        {'|'.join(names)}) {_bash_value(value)}; return ;;"
    yield "    esac"
    yield BASH_WALK.format(valued="|".join(valued))
    yield f'        local flags="{_names(settings())}"'
    yield '        case "$command" in'
    for name, command in COMMANDS.items():
        if command.options:
            yield f'            {name}) flags="$flags {_names(options(command))}" ;;'
    yield "        esac"
    yield f"        {BASH_WORDS.format('$flags')}"
    yield "        return"
    yield "    fi"
    yield '    case "$command:$place" in'
    yield f"        :0) {BASH_WORDS.format(' '.join(COMMANDS))} ;;"
    for name, command in COMMANDS.items():
        for place, value in enumerate(arguments(command)):
            yield f"        {name}:{place}) {_bash_value(value)} ;;"
    yield "    esac"
    yield "}"
    yield ""
    yield "complete -F _mcp_memory mcp-memory"


def _bash_value(value: Value) -> str:
    return BASH_WORDS.format(" ".join(value.words)) if value.words else BASH_FILES.get(value.kind, ":")


def _by_value(valued: dict[str, Value]) -> dict[Value, list[str]]:
    """Options that take the same stand together."""
    together: dict[Value, list[str]] = {}
    for name, value in valued.items():
        together.setdefault(Value("", value.words, value.kind), []).append(name)
    return together


# ── zsh ──────────────────────────────────────────────────────────────────────────────────────────

ZSH_HEAD = """\
#compdef mcp-memory
# Completion of mcp-memory for zsh. To use it, put it on the fpath as _mcp-memory, or after compinit:
#     eval "$(mcp-memory completion zsh)"

_mcp_memory() {
    local curcontext="$curcontext" state line
    local -A opt_args
    local -a settings commands"""
ZSH_END = """\
    esac
}

if [ "$funcstack[1]" = "_mcp-memory" ]; then
    _mcp_memory "$@"
else
    compdef _mcp_memory mcp-memory
fi"""


def zsh() -> Iterator[str]:
    yield ZSH_HEAD
    yield "    settings=("
    yield from (f"        {_zsh_flag(flag)}" for flag in settings())
    yield "    )"
    yield "    commands=("
    for name, command in COMMANDS.items():
        yield f"        {_single(f'{name}:{first_sentence(command.about)}')}"
    yield "    )"
    yield "    _arguments -C $settings '1: :->command' '*:: :->words'"
    yield '    case "$state:$words[1]" in'
    yield "        command:*) _describe -t commands command commands ;;"
    for name, command in COMMANDS.items():
        specs = [_zsh_flag(flag) for flag in options(command)]
        specs += [f"'{place}:{_zsh_value(value)}'" for place, value in enumerate(arguments(command), 1)]
        yield f"        words:{name}) _arguments $settings {' '.join(specs)} ;;".replace("  ;;", " ;;")
    yield ZSH_END


def _zsh_flag(flag: Flag) -> str:
    about = flag.short.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")
    value = f":{_zsh_value(flag.value)}" if flag.value else ""
    if len(flag.names) == 1:
        return _single(f"{flag.names[0]}{'=' if value else ''}[{about}]{value}")
    excluded, either = f"({' '.join(flag.names)})", ",".join(flag.names)
    return f"'{excluded}'{{{either}}}{_single(f'[{about}]{value}')}"


def _zsh_value(value: Value) -> str:
    what = {"files": "_files", "folders": "_files -/"}.get(value.kind, " ")
    name = value.name.lower().replace(":", "\\:") if not value.words else "value"
    return f"{name}:({' '.join(value.words)})" if value.words else f"{name}:{what}"


def _single(text: str) -> str:
    """In single quotation marks, as shells read them."""
    return "'" + text.replace("'", "'\\''") + "'"


# ── fish ─────────────────────────────────────────────────────────────────────────────────────────

FISH_HEAD = """\
# Completion of mcp-memory for fish. To keep it:
#     mcp-memory completion fish > ~/.config/fish/completions/mcp-memory.fish
complete -c mcp-memory -f"""
FISH_KINDS = {"files": "-r -F", "folders": "-x -a '(__fish_complete_directories)'"}


def fish() -> Iterator[str]:
    yield FISH_HEAD
    none = f"not __fish_seen_subcommand_from {' '.join(COMMANDS)}"
    for name, command in COMMANDS.items():
        yield f"complete -c mcp-memory -n '{none}' -a {name} -d {_fish_quoted(first_sentence(command.about))}"
    for flag in settings():
        yield f"complete -c mcp-memory {_fish_flag(flag)}"
    for name, command in COMMANDS.items():
        seen = f"__fish_seen_subcommand_from {name}"
        for flag in options(command):
            yield f"complete -c mcp-memory -n '{seen}' {_fish_flag(flag)}"
        for value in arguments(command):
            if value.words:
                words = " ".join(value.words)
                again = f"; and not __fish_seen_subcommand_from {words}"
                yield f"complete -c mcp-memory -n '{seen}{again}' -a '{words}'"
            elif value.kind:
                yield f"complete -c mcp-memory -n '{seen}' {FISH_KINDS[value.kind].removeprefix('-r ')}"


def _fish_flag(flag: Flag) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names)
    takes = ""
    if flag.value:
        words = " ".join(flag.value.words)
        takes = f"-x -a '{words}' " if words else FISH_KINDS.get(flag.value.kind, "-x") + " "
    return f"{names} {takes}-d {_fish_quoted(flag.short)}"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


# ── PowerShell ───────────────────────────────────────────────────────────────────────────────────

POWERSHELL_HEAD = """\
# Completion of mcp-memory for PowerShell, 5.1 and newer. To use it, in $PROFILE:
#     mcp-memory completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName 'mcp-memory', 'mcp-memory.exe' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)"""
POWERSHELL_END = """\
    $typed = @($commandAst.CommandElements | Select-Object -Skip 1 | Where-Object {
        $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object { $_.ToString() })
    $command = ''; $place = 0; $open = ''
    foreach ($word in $typed) {
        if ($open) { $open = ''; continue }
        if ($values.ContainsKey($word)) { $open = $word }
        elseif ($word -notlike '-*') { if ($command) { $place++ } else { $command = $word } }
    }
    $offered = @()
    if ($open) { $offered = $values[$open] }
    elseif ($wordToComplete -like '-*') { $offered = $settings + $options[$command] }
    elseif (-not $command) { $offered = $commands }
    else { $offered = $words["${command}:$place"] }
    # Where nothing is offered PowerShell completes files.
    @($offered) | Where-Object { $_ -and $_ -like "$wordToComplete*" } | ForEach-Object {
        [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
    }
}"""


def powershell() -> Iterator[str]:
    yield POWERSHELL_HEAD
    yield f"    $commands = {_powershell_list(COMMANDS)}"
    yield f"    $settings = {_powershell_list(name for flag in settings() for name in flag.names)}"
    yield "    $options = @{"
    for name, command in COMMANDS.items():
        yield f"        '{name}' = {_powershell_list(each for flag in options(command) for each in flag.names)}"
    yield "    }"
    yield "    $values = @{"
    for name, flag in every_flag().items():
        if flag.value:
            yield f"        '{name}' = {_powershell_list(flag.value.words)}"
    yield "    }"
    yield "    $words = @{"
    for name, command in COMMANDS.items():
        for place, value in enumerate(arguments(command)):
            yield f"        '{name}:{place}' = {_powershell_list(value.words)}"
    yield "    }"
    yield POWERSHELL_END


def _powershell_list(words: Iterable[str]) -> str:
    return "@(" + ", ".join("'" + word.replace("'", "''") + "'" for word in words) + ")"


SHELLS: dict[str, Callable[[], Iterator[str]]] = {"bash": bash, "zsh": zsh, "fish": fish, "powershell": powershell}
