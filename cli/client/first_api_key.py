"""The first API key: ADA_API_KEY, or a key that `./ada up` creates and stores in the data directory."""

import secrets
from pathlib import Path

from cli.settings.settings import Settings
from core.errors import SetupError


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
