"""Says who makes the request, and what the console offers."""

from typing import Literal

from msgspec import Struct

from core.model.field_types import IdField
from core.model.people import ObjectKind, id_text
from core.orders.order import Caller
from core.sessions import Identity
from delivery.api.deliveries.sender import OwnedGroup, QuotaResponse, with_sizes
from delivery.http.context import Request, Response
from delivery.http.options import Options
from delivery.http.route import NoParameters, People, Route, Routes
from delivery.http.services import ApiServices

Right = Literal["write", "read", "people", "operate", "inspect", "keys", "author"]


class Me(Struct):
    """The author of the request. `id`, `name`: of the signed-in person, or of the API key. `rights`: what the console
    offers.

    `owns_all`: writes to every group and person, without owning it. `quota` is null for a key, which has none of its
    own.
    `quiet_hours`: begin and end on the clock of `timezone`, such as 22:00 and 07:00; null: there are none.
    """

    kind: Literal["person", "key"]
    id: IdField
    name: str
    tenant: str
    scopes: list[str]
    rights: list[Right]
    role: str | None
    locale: str | None
    owns_all: bool
    groups: list[OwnedGroup]
    supergroups: list[OwnedGroup]
    timezone: str
    quiet_hours: list[str] | None
    quota: QuotaResponse | None


_SCOPES_OF_RIGHTS: dict[Right, tuple[str, bool]] = {
    "write": ("send", False),
    "read": ("read", True),
    "people": ("manage", True),
    "operate": ("operator", False),
    "inspect": ("inspect", False),
    "keys": ("admin", True),
    "author": ("admin", True),
}
"""The scope of each right, and whether it is shown to a person that only reads (`inspect`): the API refuses its
changes."""


async def show(request: Request[None, NoParameters]) -> Response:
    """Return who makes the request."""
    return Response(await describe(request.identity, request.services, request.options))


async def describe(identity: Identity, services: ApiServices, options: Options) -> Me:
    """Return who it is, with rights, groups and quota as they are now."""
    person, key = identity.person, identity.key
    groups, supergroups = await _owned(identity, services)
    quiet = services.core.sending.quiet_hours(key.tenant)
    return Me(
        kind="person" if person else "key",
        id=person.id if person else key.id,
        name=key.name,
        tenant=key.tenant,
        scopes=sorted(key.scopes),
        rights=rights_of(identity),
        role=person.role if person else None,
        locale=person.locale if person else None,
        owns_all=services.core.sending.writes_to_all(Caller(key.tenant, person=person)),
        groups=groups,
        supergroups=supergroups,
        timezone=str(options.tenant_timezones.get(key.tenant, options.timezone)),
        quiet_hours=[f"{one:%H:%M}" for one in (quiet.begin, quiet.end)] if quiet else None,
        quota=await _quota(identity, services),
    )


def rights_of(identity: Identity) -> list[Right]:
    """Return what the console offers: exactly what the API allows."""
    key = identity.key
    return [
        right
        for right, (scope, may_be_read) in _SCOPES_OF_RIGHTS.items()
        if key.permits(scope) or (may_be_read and key.may_read(scope))
    ]


async def _quota(identity: Identity, services: ApiServices) -> QuotaResponse | None:
    if identity.person is None:
        return None
    return QuotaResponse.of(await services.core.sending.quota(identity.tenant, identity.person.id))


async def _owned(identity: Identity, services: ApiServices) -> tuple[list[OwnedGroup], list[OwnedGroup]]:
    """Return the groups and supergroups that a person owns."""
    if identity.person is None:
        return [], []
    directory, tenant = services.core.directory, identity.tenant
    owned = await directory.ownerships.of(tenant, identity.person.id)
    found: dict[ObjectKind, list[str]] = {"group": [], "supergroup": []}
    for one in owned:
        found[one.kind].append(id_text(one.id))
    groups = await with_sizes(directory.groups, tenant, found["group"])
    return groups, await with_sizes(directory.supergroups, tenant, found["supergroup"])


ROUTES: Routes = (
    Route("GET", "/v1/me", "Who makes the request: rights, role, owned groups, quota, time zone", "", show, 200, Me,
          people=People.BY_SCOPE),
)  # fmt: skip
