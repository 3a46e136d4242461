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
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from core.errors import Invalid
from providers.service_settings import check_addresses, read_service_file


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
    return checked(read_service_file(file, Service, environment))


def checked(services: Mapping[str, Service]) -> Mapping[str, Service]:
    """Return the services, if all addresses are https, or http on this machine, as the sandbox's. Raises SetupError."""
    check_addresses([url for one in services.values() for url in one.addresses])
    return services


def find_service(services: Mapping[str, Service], name: str) -> Service:
    """Return the service with this name. Raises Invalid SERVICE_UNKNOWN."""
    if name not in services:
        known = ", ".join(sorted(services)) or "none"
        raise Invalid("SERVICE_UNKNOWN", f"There is no service {name!r}; known are: {known}.", "service")
    return services[name]
