"""TLS for a connection: the greeting first, then the connection as if nothing had been.

A greeting takes a place among the connections, so that ten thousand of them that never end take no more
than others do. A certificate that is renewed on disk is taken up for those who come after."""

from __future__ import annotations

import asyncio
import os
import ssl
from typing import TYPE_CHECKING

from mcp_memory.settings import BadSetting, full_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_memory.settings import Settings
    from mcp_memory.wire.connection import Connection
    from mcp_memory.wire.serving import Service

GREETING_SECONDS = 10.0
FAREWELL_SECONDS = 2.0


class Certificate:
    """The files of a certificate, and the context made of them."""

    def __init__(self, cert: str, key: str = "") -> None:
        self._cert, self._key = cert, key or None
        self._stamp = self._stamps()
        try:
            self.context = self._made()
        except (OSError, ssl.SSLError) as error:
            raise BadSetting(f"--tls-cert {cert} cannot be used: {error}") from error

    def refresh(self) -> str:
        """Take up renewed files. For a worker; what went wrong, if anything."""
        stamp = self._stamps()
        if stamp == self._stamp:
            return ""
        self._stamp = stamp
        try:
            self.context = self._made()
        except (OSError, ssl.SSLError) as error:
            return f"the renewed certificate cannot be used, the old one still is: {error}"
        return "the certificate was renewed"

    def _made(self) -> ssl.SSLContext:
        # A new one each time: half of a renewal, taken up by the old one, would leave neither.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        context.load_cert_chain(self._cert, self._key)
        return context

    def _stamps(self) -> tuple[int, ...]:
        try:
            return tuple(os.stat(path).st_mtime_ns for path in (self._cert, self._key) if path)
        except OSError:
            return ()


class Greeting(asyncio.Protocol):
    """A connection until TLS is agreed on."""

    def __init__(self, service: Service, certificate: Certificate, make: Callable[[], Connection]) -> None:
        self.service = service
        self.certificate = certificate
        self.make = make
        self._task: asyncio.Task[None] | None = None
        self._early: list[bytes] = []  # what came with the end of the greeting
        self._has_ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if not self.service.may_greet(transport):
            transport.abort()
            return
        transport.pause_reading()  # what the client says first is for TLS
        self._task = self.service.loop.create_task(self._greet(transport))

    def data_received(self, data: bytes) -> None:
        self._early.append(data)

    def eof_received(self) -> None:
        self._has_ended = True

    async def _greet(self, transport: asyncio.Transport) -> None:
        try:
            agreed = await self.service.loop.start_tls(
                transport,
                self,
                self.certificate.context,
                server_side=True,
                ssl_handshake_timeout=GREETING_SECONDS,
                ssl_shutdown_timeout=FAREWELL_SECONDS,
            )
        except (OSError, asyncio.CancelledError):  # a stranger to TLS, or one who went
            transport.abort()
            return
        finally:
            self.service.greetings.pop(transport, None)
        if agreed is None or self._has_ended:
            transport.abort()
            return
        connection = self.make()
        agreed.set_protocol(connection)
        connection.connection_made(agreed)
        for data in self._early:
            connection.data_received(data)


def certificate_for(settings: Settings) -> Certificate | None:
    if not settings.tls_cert:
        if settings.tls_key:
            raise BadSetting("--tls-key is given without --tls-cert. Name the certificate too.")
        return None
    return Certificate(full_path(settings.tls_cert), full_path(settings.tls_key) if settings.tls_key else "")
