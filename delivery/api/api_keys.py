"""API keys: list, create, revoke. A key gives no right that it lacks, and revokes no wider key."""

from datetime import datetime
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from core.admission import api_keys
from core.admission.api_keys import SCIM, ApiKey
from core.errors import Forbidden, NotFound
from core.model.field_types import PRINTABLE, whole
from delivery.http.context import ApiRequest, Request, Response, no_content
from delivery.http.fields import RequestModel
from delivery.http.route import NoParameters, PlainRequest, Repeats, Route, Routes

Scope = Literal["send", "read", "manage", "urgent", "updates", "scim", "inspect", "admin", "operator"]
Tenant = Annotated[
    str, Meta(min_length=1, max_length=64, pattern=whole("[A-Za-z0-9_-]+"), extra={"pattern": "TENANT_MALFORMED"})
]


class ApiKeyRequest(RequestModel, frozen=True):
    """A new key. `scopes`: none that the caller does not have. `tenant`: by default the caller's."""

    name: Annotated[str, Meta(min_length=1, max_length=128, extra_json_schema={"pattern": PRINTABLE})]
    scopes: Annotated[list[Scope], Meta(min_length=1, max_length=9)]
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


async def list_all(request: PlainRequest) -> Response:
    """Return the keys of the caller's tenant; an operator's request gets those of all tenants."""
    keys = [key for key in await request.services.api_keys.list() if _is_in_reach(key, request)]
    return Response(ApiKeyList([ApiKeyView.of(key) for key in keys]))


async def create(request: Request[ApiKeyRequest, NoParameters]) -> Response:
    """Create a key. Raises Forbidden SCOPE_MISSING, Invalid KEY_NAME_MALFORMED."""
    body, tenant = request.body, request.body.tenant or request.tenant
    if tenant != request.tenant and not request.key.is_operator:
        raise Forbidden("SCOPE_MISSING", "A key of another tenant needs an API key with the scope operator.", "tenant")
    for number, scope in enumerate(body.scopes):
        if scope != SCIM and not request.key.permits(scope):
            raise Forbidden("SCOPE_MISSING", f"The caller does not have the scope {scope}.", f"scopes.{number}")
    key, secret = await request.services.api_keys.create(body.name, body.scopes, tenant)
    return Response(ApiKeyCreated(ApiKeyView.of(key), secret), 201, {"Cache-Control": "no-store"})


async def revoke(request: PlainRequest) -> Response:
    """Revoke a key; its sessions end with it. Raises NotFound KEY_NOT_FOUND, Forbidden SCOPE_MISSING."""
    key_id = request.part("id")
    keys = [key for key in await request.services.api_keys.list() if key.id == key_id and _is_in_reach(key, request)]
    if not keys:
        raise NotFound("KEY_NOT_FOUND", "There is no such API key.")
    if not all(request.key.permits(scope) for scope in keys[0].scopes - {SCIM}):
        raise Forbidden("SCOPE_MISSING", "The key has a scope that the caller does not have.")
    await request.services.api_keys.revoke(key_id)
    return no_content()


def _is_in_reach(key: ApiKey, request: ApiRequest) -> bool:
    return request.reaches_all_tenants or key.tenant == request.tenant


ROUTES: Routes = (
    Route("GET", "/v1/api-keys", "List API keys, with their last use and without their secrets", "admin", list_all,
          200, ApiKeyList),
    Route("POST", "/v1/api-keys", "Create an API key with no more scopes than the caller's; shows it once", "admin",
          create, 201, ApiKeyCreated, body=ApiKeyRequest),
    Route("DELETE", "/v1/api-keys/{id}", "Revoke an API key; its sessions end with it", "admin", revoke, 204,
          repeats=Repeats.STORED),
)  # fmt: skip
