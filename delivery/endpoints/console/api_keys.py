"""API keys: list, create, revoke. A key gives no right that it lacks, and revokes no wider key."""

from typing import Any

from core.admission.api_keys import ApiKey
from core.errors import Forbidden, NotFound
from delivery.endpoints.directory.reading import part
from delivery.http.context import Request, Response, no_content
from delivery.http.route import NoParameters
from delivery.schemas.console import api_keys as schemas


async def list_all(request: Request[None, NoParameters]) -> Response:
    """Return the keys of the caller's tenant; an operator's request gets those of all tenants."""
    keys = [key for key in await request.services.api_keys.list() if _is_in_reach(key, request)]
    return Response(schemas.ApiKeyList([schemas.ApiKeyView.of(key) for key in keys]))


async def create(request: Request[schemas.ApiKeyRequest, NoParameters]) -> Response:
    """Create a key. Raises Forbidden SCOPE_MISSING, Invalid KEY_NAME_MALFORMED."""
    body, tenant = request.body, request.body.tenant or request.tenant
    if tenant != request.tenant and not request.key.is_operator:
        raise Forbidden("SCOPE_MISSING", "A key of another tenant needs an API key with the scope operator.", "tenant")
    for number, scope in enumerate(body.scopes):
        if not request.key.permits(scope):
            raise Forbidden("SCOPE_MISSING", f"The caller does not have the scope {scope}.", f"scopes.{number}")
    key, secret = await request.services.api_keys.create(body.name, body.scopes, tenant)
    return Response(schemas.ApiKeyCreated(schemas.ApiKeyView.of(key), secret), 201, {"Cache-Control": "no-store"})


async def revoke(request: Request[None, NoParameters]) -> Response:
    """Revoke a key; its sessions end with it. Raises NotFound KEY_NOT_FOUND, Forbidden SCOPE_MISSING."""
    key_id = part(request, "id")
    keys = [key for key in await request.services.api_keys.list() if key.id == key_id and _is_in_reach(key, request)]
    if not keys:
        raise NotFound("KEY_NOT_FOUND", "There is no such API key.")
    if not all(request.key.permits(scope) for scope in keys[0].scopes):
        raise Forbidden("SCOPE_MISSING", "The key has a scope that the caller does not have.")
    await request.services.api_keys.revoke(key_id)
    return no_content()


def _is_in_reach(key: ApiKey, request: Request[Any, Any]) -> bool:
    return request.reaches_all_tenants or key.tenant == request.tenant
