"""The message for a user when nothing answers at the address of the API."""

import os

from core.errors import SetupError


def unreachable(base_url: str, error: Exception) -> SetupError:
    return SetupError(f"cannot reach Ada at {base_url} ({cause(error)}); start `./ada up`, or set ADA_HTTP")


def cause(error: Exception) -> str:
    """Return why a connection failed, in the words of the operating system."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno).lower()
    return "no response in time" if isinstance(error, TimeoutError) else "the connection was lost"
