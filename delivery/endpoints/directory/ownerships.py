"""Ownerships: who may write to which group or supergroup."""

from typing import cast

from core.model.people import OBJECT_KINDS, ObjectKind
from delivery.endpoints.directory.reading import part
from delivery.http.context import Request, Response, no_content
from delivery.http.responses.problems import invalid_field
from delivery.http.route import NoParameters
from delivery.schemas.directory import people as schemas

PlainRequest = Request[None, NoParameters]


async def add(request: PlainRequest) -> Response:
    """Make a person an owner of a group or supergroup."""
    await request.services.core.directory.ownerships.own(
        request.tenant, part(request, "user"), _kind(request), part(request, "id")
    )
    return no_content()


async def remove(request: PlainRequest) -> Response:
    """Withdraw an ownership; for a group also the person's supergroups that contain it."""
    await request.services.core.directory.ownerships.disown(
        request.tenant, part(request, "user"), _kind(request), part(request, "id")
    )
    return no_content()


async def list_all(request: Request[None, schemas.OfUserQuery]) -> Response:
    """Return what a person owns."""
    found = await request.services.core.directory.ownerships.of(request.tenant, request.query.user)
    return Response(schemas.OwnershipList([schemas.OwnershipResponse(one.user, one.kind, one.id) for one in found]))


def _kind(request: PlainRequest) -> ObjectKind:
    """Read the kind of an owned thing. Raises `InvalidFields` WRONG_VALUE."""
    kind = part(request, "kind")
    if kind not in OBJECT_KINDS:
        raise invalid_field("kind", "WRONG_VALUE", f"Allowed values: {', '.join(OBJECT_KINDS)}.")
    return cast(ObjectKind, kind)
