"""One server process, as a client starts it, and what it answered when.

Calls are sent without waiting; a thread collects the answers as they come. It knows no tool and no file."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

import msgspec

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "torture", "version": "1"}}
PATIENCE = 60.0  # for an answer that must come; only what has failed ever waits so long


class Refused(Exception):
    """A tool answered with an error: the object it told."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(told["error"])
        self.code = told.get("code")
        self.retryable = told.get("retryable")


class Gone(Exception):
    """The server ended before it answered this."""


class Server:
    """A program that speaks newline-delimited JSON-RPC on its standard streams."""

    hello: ClassVar[Mapping[str, Any]] = HELLO

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], patience: float = PATIENCE) -> None:
        self.patience = patience
        self._told = tempfile.TemporaryFile()  # noqa: SIM115  (closed in _over)
        self._last_words = ""
        self.process = subprocess.Popen(
            [*command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._told,
            env=dict(environment),
            # A limit on the size of files is an error to be told, not a signal to die of.
            restore_signals=False,
        )
        self.asked_at: dict[int, float] = {}
        self.answered_at: dict[int, float] = {}
        self.last_refusal = ""
        self._answers: dict[int, dict[str, Any]] = {}
        self._next = 0
        self._news = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._request("initialize", self.hello)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                answer = msgspec.json.decode(line)
            except msgspec.DecodeError:  # a last line that was cut off, or a program that prints
                continue
            if isinstance(answer, dict) and "id" in answer and "method" not in answer:
                with self._news:
                    self._answers[answer["id"]] = answer
                    self.answered_at[answer["id"]] = time.monotonic()
                    self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    def _request(self, method: str, params: Any) -> int:
        self._next += 1
        self.asked_at[self._next] = time.monotonic()
        self._write({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        return self._next

    def _write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        with suppress(OSError):  # it is dead: then this will not be answered, which is what a client sees
            self.process.stdin.write(msgspec.json.encode(message) + b"\n")
            self.process.stdin.flush()

    # ── calls ────────────────────────────────────────────────────────────────────────────────────

    def send(self, tool: str, /, **arguments: Any) -> int:
        """Ask, and go on at once; the number is for `outcome` and `was_acknowledged`."""
        return self._request("tools/call", {"name": tool, "arguments": arguments})

    def outcome(self, ident: int) -> Any:
        """What the tool answered; Refused when it could not, Gone when the server ended first."""
        answer = self.said(ident)
        if "error" in answer:
            self.last_refusal = str(answer["error"].get("message"))
            raise Refused({"error": self.last_refusal})
        result = answer["result"]
        if result.get("isError"):
            told = self.refusal(result)
            self.last_refusal = str(told["error"])
            raise Refused(told)
        return self.content(result)

    def said(self, ident: int) -> dict[str, Any]:
        """What a request was answered, whatever it was; Gone when the server ended first."""
        with self._news:
            if not self._news.wait_for(lambda: ident in self._answers or self._ended, self.patience):
                raise TimeoutError(f"no answer within {self.patience:g} s; stderr: {self.stderr()}")
            answer = self._answers.get(ident)
        if answer is None:
            raise Gone(self.stderr())
        return answer

    def about(self) -> dict[str, Any]:
        """What it said of itself when it was greeted."""
        self.outcome(1)
        about: dict[str, Any] = self._answers[1]["result"].get("serverInfo", {})
        return about

    def content(self, result: dict[str, Any]) -> Any:
        """What a result holds; older servers have it as text only."""
        if "structuredContent" in result:
            return result["structuredContent"]
        return _object(result) or result

    def refusal(self, result: dict[str, Any]) -> dict[str, Any]:
        """What a tool told that could not; many servers tell it as plain text."""
        told = _object(result)
        return told if told is not None and "error" in told else {"error": _text(result)}

    def call(self, tool: str, /, **arguments: Any) -> Any:
        return self.outcome(self.send(tool, **arguments))

    def was_acknowledged(self, ident: int) -> bool:
        """Did it say that this was done? Waits for the answer, or for the end of the process."""
        try:
            self.outcome(ident)
        except (Refused, Gone):
            return False
        return True

    def stderr(self) -> str:
        """What it has said to the person who started it."""
        if not self._told.closed:
            self._told.seek(0)
            self._last_words = self._told.read().decode(errors="replace")
        return self._last_words

    # ── endings ──────────────────────────────────────────────────────────────────────────────────

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        """As the system does it, without a word. What it had said before still counts."""
        self.process.kill()
        self._over()

    def signal(self, number: int) -> tuple[int, float]:
        """Ask it to end: its exit code, and how many seconds it took."""
        return self._ending(lambda: self.process.send_signal(number))

    def close(self) -> tuple[int, float]:
        """The client hangs up: the exit code, and how many seconds it took."""
        return self._ending(self._hang_up)

    def _ending(self, end: Callable[[], None]) -> tuple[int, float]:
        began = time.monotonic()
        end()
        code = self.process.wait(PATIENCE)
        seconds = time.monotonic() - began
        self._over()
        return code, seconds

    def _over(self) -> None:
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        self.stderr()
        assert self.process.stdout is not None
        self._told.close()
        self.process.stdout.close()
        self._hang_up()

    def _hang_up(self) -> None:
        assert self.process.stdin is not None
        with suppress(OSError):  # something may be left that a dead process did not read
            self.process.stdin.close()


def _text(result: dict[str, Any]) -> str:
    return "".join(block.get("text", "") for block in result.get("content", []))


def _object(result: dict[str, Any]) -> dict[str, Any] | None:
    try:
        told = msgspec.json.decode(_text(result))
    except msgspec.DecodeError:
        return None
    return told if isinstance(told, dict) else None


def surroundings(**more: str) -> dict[str, str]:
    """The environment of whoever asks, without their settings for a memory."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MCP_MEMORY_") and k != "MEMORY_FILE_PATH"}
    return {**kept, **more}
