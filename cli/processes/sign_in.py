"""Signing users in to outside services, as the API and the jobs use it."""

import os
from contextlib import suppress
from pathlib import Path

from cli.processes.data_directory import private_directory
from cli.settings.settings import Settings
from core.redis.store import Store
from core.sign_in import SignIn, Tokens, Vault
from core.sign_in.services import read_services
from core.sign_in.vault import new_key

_KEY = "secret_key"


def open_sign_in(store: Store, settings: Settings) -> tuple[SignIn, Tokens] | None:
    """None without ADA_SIGN_IN. Raises SetupError."""
    if settings.sign_in is None:
        return None
    services, vault = read_services(settings.sign_in), Vault(secret_keys(settings))
    tokens = Tokens(store, vault, services)
    return SignIn(store, vault, tokens, services, settings.public_url or f"http://{settings.http}"), tokens


def secret_keys(settings: Settings) -> list[str]:
    """The keys of ADA_SECRET_KEY, the newest first; without it that of a file in ADA_DATA, made at first use."""
    if settings.secret_key:
        return settings.secret_key.replace(",", " ").split()
    return [stored_key(private_directory(settings.data.absolute() / "sign_in") / _KEY)]


def stored_key(file: Path) -> str:
    """The key in the file. Of two processes that make it at once both use that of the first."""
    if not file.exists():
        made = file.with_suffix(f".{os.getpid()}")
        made.touch(0o600)
        made.write_text(new_key())
        with suppress(FileExistsError):
            os.link(made, file)
        made.unlink()
    return file.read_text().strip()
