"""Finds the people that the caller may address, by name."""

import asyncio
from typing import Annotated

from msgspec import Meta, Struct

from core.errors import Forbidden
from core.model.field_types import IdField
from core.model.people import User
from delivery.http.context import Request, Response
from delivery.http.fields import RequestModel
from delivery.http.route import People, Route, Routes

_MOST = 20


class AddresseeQuery(RequestModel, frozen=True):
    """Beginnings of words of the name, in any case."""

    name: Annotated[str, Meta(min_length=1, max_length=256)]


class FoundAddressee(Struct):
    """A person. `groups`: the titles of its groups that are not virtual, by which people of one name are told apart."""

    id: IdField
    name: str | None
    groups: list[str]


class AddresseeList(Struct):
    """At most 20 people."""

    people: list[FoundAddressee]


async def find(request: Request[None, AddresseeQuery]) -> Response:
    """Return the people that the caller may address. A person sees no contact of them. Raises Forbidden
    SCOPE_MISSING for a key that may not read the directory.
    """
    if request.identity.person is None and not request.key.permits("manage"):
        raise Forbidden("SCOPE_MISSING", "This needs an API key with the scope manage.")
    found = await request.services.core.sending.find_people(request.caller, request.query.name, _MOST)
    people = await asyncio.gather(*(_addressee(request, user) for user in found))
    return Response(AddresseeList(list(people)))


async def _addressee(request: Request[None, AddresseeQuery], user: User) -> FoundAddressee:
    groups = await request.services.core.directory.groups.with_member(request.tenant, user.id)
    return FoundAddressee(user.id, user.name, [one.title or str(one.id) for one in groups if not one.virtual])


ROUTES: Routes = (
    Route("GET", "/v1/addressees", "Find the people to whom the caller may write, by name", "send", find, 200,
          AddresseeList, query=AddresseeQuery, people=People.OWN),
)  # fmt: skip
