"""Ask real clients whether they understand what `mcp-memory init` writes: `python scripts/ask_clients.py`.

Each client that is on the PATH is set up in a home of its own that is thrown away afterwards, and asked for its
servers. It needs the package installed (`.venv-dev` has it); npm has the clients: @anthropic-ai/claude-code,
@openai/codex, @google/gemini-cli and opencode-ai. The exit code
tells whether there was one and all were content."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple


class Check(NamedTuple):
    """How a client is asked, and what it says when it is content."""

    program: str
    ask: tuple[str, ...]
    content: str


CHECKS = {
    "claude-code": Check("claude", ("mcp", "list"), r"memory: .*Connected"),
    "codex": Check("codex", ("mcp", "list"), r"^memory\s.*\benabled\b"),
    "gemini": Check("gemini", ("mcp", "list"), r"memory: .*Connected"),
    "opencode": Check("opencode", ("mcp", "list"), r"memory.*connected"),
}
OURS = (sys.executable, "-m", "mcp_memory")
ELSEWHERE = ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "MCP_MEMORY_SETTINGS", "MEMORY_FILE_PATH")


def ask(client: str) -> str | None:
    """What is wrong, if anything is: the client's own words."""
    check = CHECKS[client]
    with tempfile.TemporaryDirectory(prefix="mcp-memory-", ignore_cleanup_errors=True) as folder:
        home, project = Path(folder, "home"), Path(folder, "project")
        (home / ".gemini").mkdir(parents=True)
        project.mkdir()
        # Gemini CLI starts nothing in a folder that nobody has trusted.
        (home / ".gemini" / "trustedFolders.json").write_text(json.dumps({str(project): "TRUST_FOLDER"}))
        kept = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
        env = {**kept, "HOME": str(home), "USERPROFILE": str(home), "NO_COLOR": "1"}

        def run(*command: str) -> str:
            done = subprocess.run(
                command,
                cwd=project,
                env=env,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=180,
                check=False,
            )
            return done.stdout + done.stderr

        said = run(*OURS, "init", client, "--yes", "-f", str(home / "memory.db"))
        said += run(shutil.which(check.program) or check.program, *check.ask)
    return None if re.search(check.content, said, re.MULTILINE) else said


def version(program: str) -> str:
    done = subprocess.run(
        [shutil.which(program) or program, "--version"], capture_output=True, text=True, timeout=60, check=False
    )
    found = re.search(r"\d+\.\d+\.\d+", done.stdout + done.stderr)
    return found[0] if found else "of an unknown version"


def main() -> int:
    asked = wrong = 0
    for client, check in CHECKS.items():
        if shutil.which(check.program) is None:
            print(f"{client}: {check.program} is not here")
            continue
        asked += 1
        fault = ask(client)
        wrong += fault is not None
        print(f"{client} {version(check.program)}: {'content' if fault is None else 'NOT CONTENT'}")
        if fault:
            print(fault)
    return 1 if wrong or not asked else 0


if __name__ == "__main__":
    sys.exit(main())
