"""The address on which the API listens: whether it is free, and what the user reads if it is not."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from cli.command import CommandFailed
from cli.settings.parsing import Address


@contextmanager
def cannot_listen(address: Address, setting: str = "ADA_HTTP") -> Iterator[None]:
    """Explain why nothing can listen on an address. Raises CommandFailed for an OSError."""
    try:
        yield
    except OSError as error:
        raise CommandFailed(
            f"cannot listen on {address}: {error.strerror or error}; set {setting} to another"
        ) from error


def check_is_free(address: Address) -> None:
    """Check an address before a process is started for it. Raises CommandFailed if nothing can listen on this address
    now.
    """
    with cannot_listen(address), bind(address):
        pass


def bind(address: Address, *options: int) -> socket.socket:
    """Return a socket that is bound and does not listen."""
    family, kind, protocol, _, target = socket.getaddrinfo(
        address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    for option in (socket.SO_REUSEADDR, *options):
        bound.setsockopt(socket.SOL_SOCKET, option, 1)
    try:
        bound.bind(target)
    except OSError:
        bound.close()
        raise
    return bound
