"""Finds out whether what listens at ADA_HTTP is the Ada of our data directory, before it gets the operator's key, and
explains that nothing answers there.
"""

import json
import os
from http.client import HTTPConnection, HTTPException
from typing import Any

from cli.settings.parsing import Address
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
