"""The types of API keys over HTTP."""

from datetime import datetime
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from core.admission import api_keys
from delivery.schemas.requests import PRINTABLE, RequestModel

Scope = Literal["send", "read", "manage", "urgent", "updates", "inspect", "admin", "operator"]
Tenant = Annotated[
    str, Meta(min_length=1, max_length=64, pattern="^[A-Za-z0-9_-]+$", extra={"pattern": "TENANT_MALFORMED"})
]


class ApiKeyRequest(RequestModel, frozen=True):
    """A new key. `scopes`: none that the caller does not have. `tenant`: by default the caller's."""

    name: Annotated[str, Meta(min_length=1, max_length=128, extra_json_schema={"pattern": PRINTABLE})]
    scopes: Annotated[list[Scope], Meta(min_length=1, max_length=8)]
    tenant: Tenant | UnsetType = UNSET


class ApiKeyView(Struct):
    """A key without its secret. `used_at`: to a minute; null if it was never used."""

    id: str
    name: str
    tenant: str
    scopes: list[str]
    created_at: datetime
    used_at: datetime | None

    @classmethod
    def of(cls, key: api_keys.ApiKey) -> "ApiKeyView":
        return cls(key.id, key.name, key.tenant, sorted(key.scopes), key.created_at, key.used_at)


class ApiKeyList(Struct):
    """The keys, the oldest first."""

    api_keys: list[ApiKeyView]


class ApiKeyCreated(Struct):
    """A new key. `secret` is shown only here."""

    key: ApiKeyView
    secret: str
