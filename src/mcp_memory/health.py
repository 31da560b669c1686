"""`mcp-memory health`: is the server that these settings describe ready? For containers and other keepers of servers.

It asks as any client would, from this computer, and needs no token: what /readyz tells is no secret."""

from __future__ import annotations

import socket
import sys
from typing import TYPE_CHECKING

from mcp_memory.wire.access import address_of

if TYPE_CHECKING:
    from mcp_memory.settings import Request, Settings

PATIENCE = 5.0
# Where a server that listens everywhere is reached from here.
EVERYWHERE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


def health(request: Request) -> int:
    """0 if it is ready, 1 if not. A server on standard streams has one client, which sees for itself."""
    settings = request.settings
    if settings.transport == "stdio":
        print("stdio: whoever started the server sees how it is")
        return 0
    try:
        is_ready, said = ASKING[settings.transport](settings, *place_of(settings.bind))
    except OSError as error:
        is_ready, said = False, f"nobody answers at {settings.bind}: {error}"
    print(said, file=sys.stdout if is_ready else sys.stderr)
    return 0 if is_ready else 1


def place_of(bind: str) -> tuple[str, int]:
    """Where this computer reaches what listens there."""
    host, port = address_of(bind)
    return EVERYWHERE.get(host, host), port


def _over_http(settings: Settings, host: str, port: int) -> tuple[bool, str]:
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    if settings.tls_cert:
        from ssl import CERT_NONE, PROTOCOL_TLS_CLIENT, SSLContext

        # The certificate is for the name that clients use, and this call does not leave the computer.
        context = SSLContext(PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, CERT_NONE
        connection: HTTPConnection = HTTPSConnection(host, port, timeout=PATIENCE, context=context)
    else:
        connection = HTTPConnection(host, port, timeout=PATIENCE)
    try:
        connection.request("GET", "/readyz", headers={"Host": f"localhost:{port}"})
        answer = connection.getresponse()
        return answer.status == 200, answer.read(1000).decode(errors="replace").strip()
    except HTTPException as error:
        return False, f"what answers at {settings.bind} speaks no HTTP: {error!r}"
    finally:
        connection.close()


def _over_tcp(settings: Settings, host: str, port: int) -> tuple[bool, str]:
    socket.create_connection((host, port), PATIENCE).close()
    return True, "somebody listens"


ASKING = {"http": _over_http, "tcp": _over_tcp}
