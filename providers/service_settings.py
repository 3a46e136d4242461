"""Reads a YAML file with outside services, whose secrets come from the environment: `client_secret: "${SECRET}"`."""

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec
import yaml

from core.errors import SetupError
from core.model.user_files import fault_of

_HERE = ("127.0.0.1", "localhost", "::1")
_LIBRARY_PERMITS_HTTP = "OAUTHLIB_INSECURE_TRANSPORT"
_VARIABLE = re.compile(r"\$\{(\w+)\}")

OneService = TypeVar("OneService", bound=msgspec.Struct)


def read_service_file(
    file: Path, shape: type[OneService], environment: Mapping[str, str] = os.environ
) -> dict[str, OneService]:
    """Return the services of a file, by name. Raises SetupError."""
    try:
        written = yaml.safe_load(_VARIABLE.sub(lambda found: environment[found[1]], file.read_text()))
        return msgspec.convert(written or {}, dict[str, shape])  # type: ignore[valid-type]
    except KeyError as missing:
        raise SetupError(f"{file} needs {missing.args[0]}, which is not in the environment") from None
    except yaml.YAMLError as fault:
        raise SetupError(f"{file} is not YAML: {fault_of(fault)}") from None
    except (OSError, msgspec.ValidationError) as fault:
        raise SetupError(f"{file} cannot be read: {fault}") from None


def check_addresses(addresses: Collection[str]) -> None:
    """Check that all addresses are https, or http on this machine, as the sandbox's: oauthlib then permits http in this
    process. Raises SetupError.
    """
    plain = [url for url in addresses if urlsplit(url).scheme != "https"]
    if elsewhere := [url for url in plain if not _is_here(url)]:
        raise SetupError(f"an address of a sign-in service must begin with https://, not {elsewhere[0]}")
    if plain:
        os.environ[_LIBRARY_PERMITS_HTTP] = "1"  # oauthlib has no other switch


def _is_here(url: str) -> bool:
    return urlsplit(url).scheme == "http" and urlsplit(url).hostname in _HERE
