"""The files of an installation beside its server: files that a backup of the server does not contain."""

from collections.abc import Iterator
from pathlib import Path

from cli.settings.settings import Configuration

_IN_DATA = {
    "api_key": "the first API key",
    "sign_in/secret_key": "the key of the tokens of signed-in users: without it they are lost",
    "couriers": "the sessions of Telegram",
    "bots": "the state of the bots' connections",
}
_IN_FOLDER = {"settings.yaml": "the settings", ".env": "the settings"}


def files_beside(configuration: Configuration) -> Iterator[tuple[Path, str]]:
    """Emit each file or folder that is there, with what it is."""
    settings = configuration.settings
    for name, what in _IN_DATA.items():
        if (path := settings.data.absolute() / name).exists():
            yield path, what
    for name, what in _IN_FOLDER.items():
        if (path := Path.cwd() / name).exists():
            yield path, what
    named = {"ADA_SCENARIOS": settings.scenarios, "ADA_JOBS": settings.jobs, "ADA_SIGN_IN": settings.sign_in}
    for name, value in named.items():
        if value and Path(value).exists():
            yield Path(value).absolute(), f"what {name} names"
