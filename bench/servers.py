"""Our HTTP server beside the same core as an ASGI application under uvicorn, bare and in Starlette:
`.venv-dev/bin/python bench/servers.py`.

All three read one entity of two thousand for the client of `bench/http.py`, in turns. The two applications do
nothing but hand the body to a session and its answer back; ours also looks at Host, Origin, tokens and headers.
uvicorn parses with httptools too, on asyncio's loop. p50 and calls a second are those of the best round."""

from __future__ import annotations

import runpy
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median

HTTP = runpy.run_path(str(Path(__file__).with_name("http.py")), run_name="bench_http")
ROUNDS = 8
APPLICATION = """
import sys

import uvicorn

from mcp_memory.assembly import desk_for
from mcp_memory.settings import Settings
from mcp_memory.wire import Offer, Session

file, port, kind = sys.argv[1:]
offer = Offer(desk_for(Settings(memory_file=file)), {"name": "bench", "version": "1"})


async def bare(scope, receive, send):
    body, more = b"", True
    while more:
        event = await receive()
        body += event.get("body", b"")
        more = event.get("more_body", False)
    answer = Session(offer, "http").receive(body)[-1]
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


def framed():
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    async def endpoint(request):
        answer = Session(offer, "http").receive(await request.body())[-1]
        return Response(answer, media_type="application/json")

    return Starlette(routes=[Route("/mcp", endpoint, methods=["POST"])])


app = bare if kind == "bare" else framed()
uvicorn.run(
    app, host="127.0.0.1", port=int(port), http="httptools", loop="asyncio", lifespan="off", access_log=False,
    log_level="error",
)
"""


def main() -> int:
    request = HTTP["request"]
    data = request("open_nodes", {"names": ["person 7"]})
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        script, settings = folder / "application.py", folder / "settings.toml"
        script.write_text(APPLICATION, encoding="utf-8")
        settings.write_text("", encoding="utf-8")
        processes = []
        ports = {kind: HTTP["free_port"]() for kind in ("ours", "bare ASGI, uvicorn", "Starlette, uvicorn")}
        for kind, port in ports.items():
            file = folder / f"{kind.partition(' ')[0].strip(',')}.db"
            command: tuple[str | Path, ...]
            if kind == "ours":
                more = ("--transport", "http", "--bind", f"127.0.0.1:{port}", "--settings", settings)
                command = (sys.executable, "-m", "mcp_memory", "-f", file, *more)
            else:
                command = (sys.executable, script, file, str(port), kind.partition(" ")[0])
            processes.append(stack.enter_context(HTTP["running"](*command)))
        waits: dict[str, list[float]] = {kind: [] for kind in ports}
        rates: dict[str, list[float]] = {kind: [] for kind in ports}
        for port in ports.values():
            HTTP["reachable"](port)
            HTTP["fill"](port)
        for process in processes:
            HTTP["until_idle"](process)
        for _ in range(ROUNDS):
            for kind, port in ports.items():
                waits[kind].append(HTTP["one_by_one"](port, data))
                rates[kind].append(HTTP["at_once"](port, data))
    print(f"{ROUNDS} rounds in turns: p50 on 1 connection, calls/s on {HTTP['CONNECTIONS']}; best and median round")
    for kind in ports:
        waited, rated = waits[kind], rates[kind]
        print(f"{kind:<20}{min(waited):>8.0f} us ({median(waited):.0f}){max(rated):>12,.0f}/s ({median(rated):,.0f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
