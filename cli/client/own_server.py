"""The Ada of this data directory: the key that its users share, and whether it is what listens at ADA_HTTP.

The key is ADA_API_KEY, or the one that `./ada up` creates and stores. A server gets it only after it has proved that it
knows it.
"""

import json
import os
import secrets
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from cli.settings.parsing import Address
from cli.settings.settings import Settings
from core.admission.server_proof import is_proof, new_nonce
from core.errors import SetupError

TIMEOUT = 10.0
"""Seconds for each step of the request."""

_MOST_BYTES = 4096


def own_server(address: Address, key: str) -> Address:
    """Return the address of the connection over which the server has proved that it knows `key`. Raises SetupError."""
    connection, nonce = HTTPConnection(address.host, address.port, timeout=TIMEOUT), new_nonce()
    try:
        connection.connect()
        peer = connection.sock.getpeername()
        if not is_proof(_ask(connection, nonce), key, nonce, peer):
            raise _stranger(address)
    except OSError as error:
        raise unreachable(f"http://{address}", error) from None
    finally:
        connection.close()
    return Address(peer[0], peer[1])


def _ask(connection: HTTPConnection, nonce: str) -> Any:
    """Return the proof that the server gives; None if it answers something else."""
    try:
        connection.request("GET", f"/v1/server-proof?nonce={nonce}")
        return json.loads(connection.getresponse().read(_MOST_BYTES))["proof"]
    except (HTTPException, ValueError, KeyError, TypeError):
        return None


def _stranger(address: Address) -> SetupError:
    return SetupError(
        f"what listens at http://{address} is not the Ada of this data directory, so it does not get the API key;"
        " start `./ada up`, or set ADA_HTTP; for a server elsewhere set ADA_API_KEY, too"
    )


def unreachable(base_url: str, error: Exception) -> SetupError:
    return SetupError(f"cannot reach Ada at {base_url} ({cause(error)}); start `./ada up`, or set ADA_HTTP")


def cause(error: Exception) -> str:
    """Return why a connection failed, in the words of the operating system."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno).lower()
    return "no response in time" if isinstance(error, TimeoutError) else "the connection was lost"


def get_or_create_api_key(settings: Settings) -> str:
    """Return the first key. Create it if there is none; only the owner of the file can read it."""
    if settings.api_key:
        return settings.api_key
    file = key_file(settings)
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.touch(mode=0o600)
        file.write_text(f"ada_{secrets.token_urlsafe(32)}\n")
    return file.read_text().strip()


def read_api_key(settings: Settings) -> str:
    """Return the key for verbs that call a running Ada. Raises SetupError if there is none."""
    if settings.api_key:
        return settings.api_key
    if key := stored_api_key(settings):
        return key
    raise SetupError(f"no API key: set ADA_API_KEY, or start `./ada up` here ({key_file(settings)} does not exist)")


def stored_api_key(settings: Settings) -> str:
    """Return the key in the data directory, "" if there is none."""
    try:
        return key_file(settings).read_text().strip()
    except OSError:
        return ""


def key_file(settings: Settings) -> Path:
    return settings.data.absolute() / "api_key"
