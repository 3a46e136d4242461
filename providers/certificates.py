"""The certificates that a client of an outside service trusts."""

import ssl
from functools import cache
from pathlib import Path

from core.errors import SetupError


@cache
def tls_context(ca: Path | None, setting: str) -> ssl.SSLContext:
    """Return the system's certificates and those of the file `ca`, which `setting` names. Raises SetupError if that
    file cannot be read. All clients of a process share one context: reading the system's certificates takes 50 ms.
    """
    context = ssl.create_default_context()
    try:
        if ca is not None:
            context.load_verify_locations(cafile=ca)
    except OSError as error:
        raise SetupError(f"{setting} is {ca}, not a file with certificates ({error.strerror})") from None
    return context
