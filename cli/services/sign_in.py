"""Signing users in to outside services, as the API and the jobs use it."""

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cli.processes.data_directory import private_directory
from cli.settings.settings import Settings
from core.errors import SetupError
from core.redis.store import Store
from providers.sign_in import KeyLost, SignIn, Tokens, Vault
from providers.sign_in.services import read_services
from providers.sign_in.stored import keys_in_use, new_key

if TYPE_CHECKING:
    from providers.oidc.sign_in import OidcSignIn

_KEY = "secret_key"


async def open_sign_in(store: Store, settings: Settings) -> SignIn | None:
    """Open the sign-ins to outside services; return None without ADA_SIGN_IN. Raises SetupError, KeyLost."""
    if settings.sign_in is None:
        return None
    services, vault = read_services(settings.sign_in), await open_vault(store, settings)
    tokens = Tokens(store, vault, services)
    return SignIn(store, vault, tokens, services, settings.public_url or f"http://{settings.http}")


def open_identity_providers(store: Store, settings: Settings) -> "OidcSignIn | None":
    """Open the sign-in of people at identity providers; return None without ADA_OIDC. Only here its library is
    imported. Raises SetupError.
    """
    if settings.oidc is None:
        return None
    try:
        from providers.oidc.settings import read_providers
        from providers.oidc.sign_in import OidcSignIn
    except ModuleNotFoundError as missing:
        raise SetupError(f"ADA_OIDC needs {missing.name}: pip install 'ada[oidc]'") from None
    return OidcSignIn(store, read_providers(settings.oidc), settings.public_url or f"http://{settings.http}")


async def open_vault(store: Store, settings: Settings) -> Vault:
    """Encrypt with the keys of the settings, or with a new one if nothing was encrypted before. Raises SetupError,
    KeyLost.
    """
    return await check_secret_key(store, settings) or Vault([stored_key(_file(settings))])


async def check_secret_key(store: Store, settings: Settings) -> Vault | None:
    """Return None if there is no key, and none is needed. Raises SetupError, KeyLost."""
    keys = known_keys(settings)
    vault = Vault(keys) if keys else None
    if await keys_in_use(store) - set(vault.fingerprints if vault else ()):
        raise KeyLost
    return vault


def known_keys(settings: Settings) -> list[str]:
    """Return the keys of ADA_SECRET_KEY, the newest first; without it that of the file in ADA_DATA, if it exists."""
    if settings.secret_key:
        return settings.secret_key.replace(",", " ").split()
    return [_file(settings).read_text().strip()] if _file(settings).exists() else []


def _file(settings: Settings) -> Path:
    return settings.data.absolute() / "sign_in" / _KEY


def stored_key(file: Path) -> str:
    """Return the key in the file. Of two processes that make it at once both use that of the first."""
    if not file.exists():
        private_directory(file.parent)
        made = file.with_suffix(f".{os.getpid()}")
        made.touch(0o600)
        made.write_text(new_key())
        with suppress(FileExistsError):
            os.link(made, file)
        made.unlink()
    return file.read_text().strip()
