"""The identity providers of the console, from a YAML file (ADA_OIDC):

university:
  issuer: https://id.example.org/realms/university   # exactly as the provider writes it
  client_id: ada
  client_secret: "${OIDC_SECRET}"                    # from the environment; absent for a public client
  title: University account                          # the text of the button; absent: the name
  scopes: [openid, email, profile]
  tenant: default
  roles:                                             # absent: roles are given in Ada alone
    claim: realm_access.roles                        # a text or a list of texts; a dot leads into an object
    values: {ada-office: staff, teachers: trainer}   # the first that fits; admin only if it stands here
  timeout_seconds: 10
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from core.errors import NotFound, SetupError
from core.model.people import Role
from providers.service_settings import check_addresses, read_service_file

_NAME = re.compile(r"[a-z0-9-]{1,32}")


class RoleRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Values of a claim that give a role. `values`: in the order of their weight."""

    claim: str
    values: dict[str, Role]


class OidcProvider(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One identity provider, and what it knows Ada by. `roles` None: it gives none."""

    issuer: str
    client_id: str
    client_secret: str = ""
    title: str = ""
    scopes: tuple[str, ...] = ("openid", "email", "profile")
    tenant: Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,64}$")] = "default"
    roles: RoleRule | None = None
    timeout_seconds: Annotated[float, Meta(gt=0, le=60)] = 10.0


def read_providers(file: Path, environment: Mapping[str, str] = os.environ) -> Mapping[str, OidcProvider]:
    """Return the providers of a file, by name. Raises SetupError."""
    found = read_service_file(file, OidcProvider, environment)
    if wrong := [name for name in found if not _NAME.fullmatch(name)]:
        raise SetupError(f"{file}: the name of a provider has small letters, digits and hyphens, not {wrong[0]!r}")
    if without := [name for name, one in found.items() if "openid" not in one.scopes]:
        raise SetupError(f"{file}: the scopes of {without[0]} need openid")
    check_addresses([one.issuer for one in found.values()])
    return found


def find_provider(providers: Mapping[str, OidcProvider], name: str) -> OidcProvider:
    """Return the provider with this name. Raises NotFound PROVIDER_NOT_FOUND."""
    if name not in providers:
        raise NotFound("PROVIDER_NOT_FOUND", "There is no identity provider with this name.")
    return providers[name]
