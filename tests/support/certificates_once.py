"""aiogram reads the file of all certificates for each client: 50 ms, for hundreds of clients. Here it is read once."""

import ssl
from functools import cache
from typing import Any

_new = ssl.create_default_context


@cache
def _trusting(cafile: str) -> ssl.SSLContext:
    return _new(cafile=cafile)


def _context(*arguments: Any, **options: Any) -> ssl.SSLContext:
    if arguments or options.keys() != {"cafile"}:
        return _new(*arguments, **options)
    return _trusting(options["cafile"])


def install() -> None:
    """Give one context to all that only name the file of the certificates they trust."""
    vars(ssl)["create_default_context"] = _context
