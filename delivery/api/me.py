"""Says who makes the request, and what the console offers; keeps the personal keys of people, also for
administrators.
"""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from msgspec import Meta, Struct

from core.model.field_types import PRINTABLE, IdField
from core.model.people import ObjectKind, id_text
from core.orders.order import Caller
from core.sessions import Identity
from core.sessions.personal_keys import DEFAULT_DAYS, LONGEST_DAYS, check_signed_in
from core.sessions.sessions import PersonalKey
from delivery.api.deliveries.sender import OwnedGroup, QuotaResponse, with_sizes
from delivery.http.context import ApiRequest, ApiServices, Request, Response, no_content
from delivery.http.fields import RequestModel
from delivery.http.options import Options
from delivery.http.route import NoParameters, People, PlainRequest, Repeats, Route, Routes

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


async def show(request: PlainRequest) -> Response:
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
        timezone=str(options.timezone_of(key.tenant)),
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


class PersonalKeyRequest(RequestModel, frozen=True):
    """A new key. `scopes`: none that the person does not have. `days`: how long it is valid. `calendar`
    stands alone: such a key is the last part of the address `/v1/calendar/SECRET.ics`, and nothing else.
    """

    name: Annotated[str, Meta(min_length=1, max_length=128, extra_json_schema={"pattern": PRINTABLE})]
    scopes: Annotated[list[Literal["send", "read", "manage", "calendar"]], Meta(min_length=1, max_length=3)]
    days: Annotated[int, Meta(ge=1, le=LONGEST_DAYS)] = DEFAULT_DAYS


class PersonalKeyView(Struct):
    """A personal key without its secret. `used_at`: to a minute; null if it was never used."""

    id: str
    name: str
    scopes: list[str]
    expires_at: datetime
    used_at: datetime | None

    @classmethod
    def of(cls, key: PersonalKey) -> "PersonalKeyView":
        return cls(key.id, key.name, key.scopes, key.expires_at, key.used_at)


class PersonalKeyList(Struct):
    """The keys of the person, at most 20, that which ends first before the others."""

    keys: list[PersonalKeyView]


class PersonalKeyCreated(Struct):
    """A new key. `secret` is shown only here."""

    key: PersonalKeyView
    secret: str


async def list_own_keys(request: PlainRequest) -> Response:
    keys = await request.services.personal_keys.list(check_signed_in(request.identity))
    return Response(PersonalKeyList([PersonalKeyView.of(key) for key in keys]))


async def create_key(request: Request[PersonalKeyRequest, NoParameters]) -> Response:
    body, identity = request.body, check_signed_in(request.identity)
    lifetime = timedelta(days=body.days)
    key, secret = await request.services.personal_keys.create(identity, body.name, body.scopes, lifetime)
    return Response(PersonalKeyCreated(PersonalKeyView.of(key), secret), 201, {"Cache-Control": "no-store"})


async def revoke_key(request: PlainRequest) -> Response:
    await request.services.personal_keys.revoke(check_signed_in(request.identity), request.part("id"))
    return no_content()


async def list_keys_of_person(request: PlainRequest) -> Response:
    """Raises NotFound USER_NOT_FOUND."""
    keys = await request.services.personal_keys.list(await _of_person(request))
    return Response(PersonalKeyList([PersonalKeyView.of(key) for key in keys]))


async def revoke_key_of_person(request: PlainRequest) -> Response:
    """Revoke a key that its person has lost. Raises NotFound USER_NOT_FOUND, KEY_NOT_FOUND."""
    await request.services.personal_keys.revoke(await _of_person(request), request.part("key"))
    return no_content()


async def _of_person(request: ApiRequest) -> Identity:
    tenant = request.tenant
    user = await request.services.core.directory.users.find(tenant, request.part("id"))
    return Identity.of_person(tenant, user, "", datetime.now(UTC))


ROUTES: Routes = (
    Route("GET", "/v1/me", "Who makes the request: rights, role, owned groups, quota, time zone", "", show, 200, Me,
          people=People.BY_SCOPE),
    Route("GET", "/v1/me/keys", "List the personal keys of the person who is signed in", "", list_own_keys,
          200, PersonalKeyList, people=People.OWN),
    Route("POST", "/v1/me/keys", "Create a personal key with some of the person's rights; shows it once", "",
          create_key, 201, PersonalKeyCreated, body=PersonalKeyRequest, people=People.OWN),
    Route("DELETE", "/v1/me/keys/{id}", "Revoke a personal key", "", revoke_key, 204, repeats=Repeats.STORED,
          people=People.OWN),
    Route("GET", "/v1/users/{id}/keys", "List the personal keys of a person", "manage", list_keys_of_person, 200,
          PersonalKeyList, people=People.BY_SCOPE),
    Route("DELETE", "/v1/users/{id}/keys/{key}", "Revoke a personal key of a person", "manage", revoke_key_of_person,
          204, repeats=Repeats.STORED, people=People.BY_SCOPE),
)  # fmt: skip
