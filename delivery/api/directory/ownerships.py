"""Ownerships: who may write to which group or supergroup."""

from typing import cast

from msgspec import Struct

from core.model.history_key import Id
from core.model.people import OBJECT_KINDS, ObjectKind
from delivery.api.directory.contacts import OfUserQuery
from delivery.http.context import Request, Response, no_content
from delivery.http.input.reading import part
from delivery.http.responses.problems import invalid_field
from delivery.http.route import NoParameters, People, Repeats, Route, Routes


class OwnershipResponse(Struct):
    """The person `user` may write to the group or supergroup `id`."""

    user: Id
    kind: ObjectKind
    id: Id


class OwnershipList(Struct):
    """The groups, then the supergroups, that a person owns."""

    ownerships: list[OwnershipResponse]


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


async def list_all(request: Request[None, OfUserQuery]) -> Response:
    """Return what a person owns."""
    found = await request.services.core.directory.ownerships.of(request.tenant, request.query.user)
    return Response(OwnershipList([OwnershipResponse(one.user, one.kind, one.id) for one in found]))


def _kind(request: PlainRequest) -> ObjectKind:
    """Read the kind of an owned thing. Raises `InvalidFields` WRONG_VALUE."""
    kind = part(request, "kind")
    if kind not in OBJECT_KINDS:
        raise invalid_field("kind", "WRONG_VALUE", f"Allowed values: {', '.join(OBJECT_KINDS)}.")
    return cast(ObjectKind, kind)


ROUTES: Routes = (
    Route("GET", "/v1/ownerships", "List what a person owns", "manage", list_all, 200, OwnershipList,
          query=OfUserQuery, people=People.BY_SCOPE),
    Route("PUT", "/v1/ownerships/{user}/{kind}/{id}", "Let a person write to a group or supergroup", "manage", add,
          204, repeats=Repeats.STORED, people=People.BY_SCOPE),
    Route("DELETE", "/v1/ownerships/{user}/{kind}/{id}",
          "Withdraw an ownership; for a group also supergroups that contain it", "manage", remove, 204,
          repeats=Repeats.STORED, people=People.BY_SCOPE),
)  # fmt: skip
