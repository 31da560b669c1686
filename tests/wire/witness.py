"""A well-behaved client in a process of its own: asks again and again, and tells at the end how long it waited.

Arguments: port and token. It ends when its standard input does, and prints one line of JSON."""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
from typing import Any

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
PAUSE = 0.002
PATIENCE = 10.0


def headers(tool: str, token: str) -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "Authorization": f"Bearer {token}",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }


def asked(web: http.client.HTTPConnection, token: str) -> tuple[float, bool]:
    """How long a small read took, and whether it was answered."""
    params: dict[str, Any] = {"name": "open_nodes", "arguments": {"names": ["Ada"]}, "_meta": META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    started = time.perf_counter()
    web.request("POST", "/mcp", body, headers("open_nodes", token))
    answer = web.getresponse()
    said = answer.read()
    return time.perf_counter() - started, answer.status == 200 and b'"Ada"' in said


def newcomer(port: int, token: str) -> float:
    """How long somebody waits who comes now, tries again when turned away, and asks once."""
    started = time.perf_counter()
    while time.perf_counter() - started < PATIENCE:
        web = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        try:
            if asked(web, token)[1]:
                break
        except (OSError, http.client.HTTPException):
            time.sleep(0.02)
        finally:
            web.close()
    return time.perf_counter() - started


def main() -> None:
    port, token = int(sys.argv[1]), sys.argv[2]
    ended = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    web = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    times, bad, came = [], 0, []
    asked(web, token)
    print("ready", flush=True)
    while not ended.wait(PAUSE):
        took, is_right = asked(web, token)
        times.append(took)
        bad += not is_right
        if len(times) % 50 == 0:
            came.append(newcomer(port, token))
    times.sort()
    p99 = times[len(times) * 99 // 100] if times else 0.0
    print(json.dumps({"calls": len(times), "bad": bad, "p50": times[len(times) // 2], "p99": p99, "came": came}))


if __name__ == "__main__":
    main()
