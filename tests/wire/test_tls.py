"""TLS: the same answers in an envelope, greetings that never end, and certificates that are renewed."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_memory.settings import BadSetting, read
from mcp_memory.wire.tls import Certificate, certificate_for
from tests.wire.keys import certificate
from tests.wire.network import PATIENCE, SETTINGS, SIGNALS, Server, Toy, call, request, running
from tests.wire.test_http_wire import post

TOKEN = "a-token-of-some-length"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return certificate(tmp_path)


@pytest.fixture
def server(tmp_path: Path, files: tuple[Path, Path]) -> Iterator[Server]:
    cert, key = files
    settings = ("--tls-cert", str(cert), "--tls-key", str(key), "--max-connections", "8")
    with running(Toy(tmp_path, "http", *settings, MCP_MEMORY_AUTH_TOKEN=TOKEN)) as server:
        yield server


def trusting(cert: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(cert))


def connected(server: Server, context: ssl.SSLContext) -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
    return context.wrap_socket(plain, server_hostname="localhost")


def ask(server: Server, context: ssl.SSLContext, size: int = 10) -> bytes:
    web = http.client.HTTPSConnection("localhost", server.port, timeout=PATIENCE, context=context)
    head, _, body = post(
        "tools/call", 1, f"Authorization: Bearer {TOKEN}\r\n", name="swell", arguments={"size": size}
    ).partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    web.request("POST", "/mcp", body, headers)
    answer = web.getresponse()
    assert answer.status == 200
    said = answer.read()
    web.close()
    return said


def test_answers_come_through_an_envelope_small_and_large(server: Server, files: tuple[Path, Path]) -> None:
    for size in (10, 2_000_000):
        said = json.loads(ask(server, trusting(files[0]), size))
        assert len(said["result"]["structuredContent"]["text"]) == size
    if SIGNALS:
        assert server.end() == (0, "")


def test_who_speaks_plainly_or_an_old_tls_is_not_answered(server: Server, files: tuple[Path, Path]) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as plain:
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"HTTP" not in plain.recv(1000)
    old = trusting(files[0])
    old.minimum_version = ssl.TLSVersion.TLSv1_2
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert ask(server, old)
    with connected(server, trusting(files[0])) as agreed:
        assert agreed.version() == "TLSv1.3"


def test_a_refusal_reaches_its_client_before_the_end(server: Server, files: tuple[Path, Path]) -> None:
    with connected(server, trusting(files[0])) as web:
        web.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n")
        assert web.recv(12) == b"HTTP/1.1 401"


def test_greetings_that_never_end_keep_nobody_out(server: Server, files: tuple[Path, Path]) -> None:
    silent = [socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) for _ in range(50)]
    time.sleep(0.3)

    assert ask(server, trusting(files[0]))
    for each in silent:
        each.close()


def test_over_tcp_the_token_is_the_first_line_inside(tmp_path: Path, files: tuple[Path, Path]) -> None:
    cert, key = files
    settings = ("--tls-cert", str(cert), "--tls-key", str(key), "--auth-token", TOKEN)
    with running(Toy(tmp_path, "tcp", *settings)) as server, connected(server, trusting(cert)) as line:
        line.sendall(TOKEN.encode() + b"\n" + request("ping", 1) + b"\n" + call(2, "names") + b"\n")
        answers = line.makefile("rb")
        assert [json.loads(answers.readline())["id"] for _ in range(2)] == [1, 2]


def test_a_renewed_certificate_is_taken_up_for_those_who_come(
    tmp_path: Path, server: Server, files: tuple[Path, Path]
) -> None:
    assert ask(server, trusting(files[0]))
    certificate(tmp_path, "renewed")
    renewed = trusting(files[0])
    until = time.monotonic() + PATIENCE
    while True:
        try:
            assert ask(server, renewed)
            return
        except ssl.SSLCertVerificationError:
            assert time.monotonic() < until
            time.sleep(0.1)


def test_a_broken_renewal_leaves_the_old_certificate(files: tuple[Path, Path]) -> None:
    its = Certificate(*map(str, files))
    assert its.refresh() == ""
    files[0].write_text("not yet written", encoding="ascii")

    assert "the old one still is" in its.refresh()
    assert its.refresh() == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [(["--tls-cert", "missing.pem"], "cannot be used"), (["--tls-key", "key.pem"], "Name the certificate too")],
)
def test_a_certificate_that_cannot_be_used_is_refused_at_the_start(arguments: list[str], complaint: str) -> None:
    with pytest.raises(BadSetting, match=complaint):
        certificate_for(read(["--settings", str(SETTINGS), *arguments], {}).settings)
