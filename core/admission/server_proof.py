"""Proof of a server to a client on its machine that it is the one of a data directory, before it gets a key. Pure.

    client ─▶ a nonce ─▶ server;   server ─▶ HMAC(secret of the data directory, nonce and address) ─▶ client compares

The address is that of the connection, as both ends of it see it: a program that passes the nonce on to the real server
gets a proof for another address.
"""

import hmac
import secrets
from typing import Any

from core.model.field_types import whole

NONCE = whole("[0-9a-f]{32}")


def new_nonce() -> str:
    return secrets.token_hex(16)


def proof_of(secret: str, nonce: str, socket_name: tuple[Any, ...]) -> str:
    """Return the proof. `socket_name`: of the server's end of the connection, as `getpeername` and `getsockname` return
    it.
    """
    host, port, *_ = socket_name
    return hmac.new(secret.encode(), f"ada server\n{nonce}\n{host}\n{port}".encode(), "sha256").hexdigest()


def is_proof(given: object, secret: str, nonce: str, socket_name: tuple[Any, ...]) -> bool:
    """Return whether `given` is the proof; compared in constant time."""
    return isinstance(given, str) and hmac.compare_digest(
        given.encode(errors="replace"), proof_of(secret, nonce, socket_name).encode()
    )
