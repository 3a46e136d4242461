"""The outside services that users sign in to, from a YAML file (ADA_SIGN_IN):

vacancies:
  authorize_url: https://example.com/oauth/authorize
  token_url: https://example.com/oauth/token
  revoke_url: https://example.com/oauth/revoke   # absent if the service has none
  client_id: ada
  client_secret: "${VACANCIES_SECRET}"     # from the environment; absent for a public client
  scopes: [read, apply]
  timeout_seconds: 15                      # of a call of token_url or revoke_url; 15 if it is absent
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
import yaml
from msgspec import Meta

from core.errors import Invalid, SetupError
from core.model.yaml_faults import fault_of

_HERE = ("127.0.0.1", "localhost", "::1")
_LIBRARY_PERMITS_HTTP = "OAUTHLIB_INSECURE_TRANSPORT"
_VARIABLE = re.compile(r"\$\{(\w+)\}")


class Service(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One service. The addresses are the service's; `client_id` and `client_secret` are what it knows Ada by.
    `revoke_url`: where tokens are revoked (RFC 7009), "" if nowhere. `timeout_seconds`: the longest wait for a response
    of `token_url` or `revoke_url`.
    """

    authorize_url: str
    token_url: str
    client_id: str
    client_secret: str = ""
    scopes: tuple[str, ...] = ()
    timeout_seconds: Annotated[float, Meta(gt=0, le=60)] = 15.0
    revoke_url: str = ""

    @property
    def addresses(self) -> list[str]:
        return [self.authorize_url, self.token_url, *filter(None, [self.revoke_url])]


def read_services(file: Path, environment: Mapping[str, str] = os.environ) -> Mapping[str, Service]:
    """Return the services of a file, by name. Raises SetupError."""
    try:
        written = yaml.safe_load(_VARIABLE.sub(lambda found: environment[found[1]], file.read_text()))
        return checked(msgspec.convert(written or {}, dict[str, Service]))
    except KeyError as missing:
        raise SetupError(f"{file} needs {missing.args[0]}, which is not in the environment") from None
    except yaml.YAMLError as fault:
        raise SetupError(f"{file} is not YAML: {fault_of(fault)}") from None
    except (OSError, msgspec.ValidationError) as fault:
        raise SetupError(f"{file} cannot be read: {fault}") from None


def checked(services: Mapping[str, Service]) -> Mapping[str, Service]:
    """Return the services, if all addresses are https, or http on this machine, as the sandbox's. Raises SetupError."""
    plain = [url for one in services.values() for url in one.addresses if not _is_https(url)]
    if elsewhere := [url for url in plain if urlsplit(url).hostname not in _HERE]:
        raise SetupError(f"an address of a sign-in service must begin with https://, not {elsewhere[0]}")
    if plain:
        os.environ[_LIBRARY_PERMITS_HTTP] = "1"  # oauthlib has no other switch
    return services


def _is_https(url: str) -> bool:
    return urlsplit(url).scheme == "https"


def find_service(services: Mapping[str, Service], name: str) -> Service:
    """Return the service with this name. Raises Invalid SERVICE_UNKNOWN."""
    if name not in services:
        known = ", ".join(sorted(services)) or "none"
        raise Invalid("SERVICE_UNKNOWN", f"There is no service {name!r}; known are: {known}.", "service")
    return services[name]
