"""The first API key: ADA_API_KEY, or one that `./ada up` made and keeps in the data directory for its owner."""

import secrets
from pathlib import Path

from cli.settings.settings import Settings
from core.errors import SetupError


def made_or_kept(settings: Settings) -> str:
    """The first key; made when there is none. Readable by the owner alone."""
    if settings.api_key:
        return settings.api_key
    file = place(settings)
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        file.write_text(f"ada_{secrets.token_urlsafe(32)}\n")
    return file.read_text().strip()


def known(settings: Settings) -> str:
    """The key for commands that speak to a running Ada. Raises SetupError."""
    if settings.api_key:
        return settings.api_key
    try:
        return place(settings).read_text().strip()
    except OSError:
        raise SetupError(
            f"no API key: set ADA_API_KEY, or start `./ada up` here ({place(settings)} is missing)"
        ) from None


def place(settings: Settings) -> Path:
    return settings.data.absolute() / "api_key"
