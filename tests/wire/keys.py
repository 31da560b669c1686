"""An authorization server and a certificate authority for a test: keys made on the spot, nothing stored."""

from __future__ import annotations

import ipaddress
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

ISSUER = "https://id.example"
AUDIENCE = "https://memory.example/mcp"


class Signer:
    """A key pair of an authorization server."""

    def __init__(self, kid: str = "one") -> None:
        self.kid = kid
        self.key = ec.generate_private_key(ec.SECP256R1())

    @property
    def public(self) -> dict[str, Any]:
        return {**json.loads(ECAlgorithm.to_jwk(self.key.public_key())), "kid": self.kid, "use": "sig", "alg": "ES256"}

    def token(self, *, head: dict[str, Any] | None = None, **claims: Any) -> str:
        """An access token that is right, but for what is given; a claim that is None is left out."""
        now = int(time.time())
        said = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 600, "scope": "read write"}
        said = {name: value for name, value in {**said, **claims}.items() if value is not None}
        return jwt.encode(said, self.key, "ES256", headers={"kid": self.kid, **(head or {})})


def jwks(*signers: Signer) -> bytes:
    return json.dumps({"keys": [signer.public for signer in signers]}).encode()


@contextmanager
def published(answers: dict[str, bytes]) -> Iterator[str]:
    """Serve these answers by their paths on this computer; the address."""

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = answers.get(self.path)
            self.send_response(200 if body is not None else 404)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def certificate(folder: Path, name: str = "localhost") -> tuple[Path, Path]:
    """A certificate for this computer, signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(timezone.utc)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return cert_file, key_file
