"""Personal keys: of the person who is signed in to list, create and revoke; of others to list and revoke."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from msgspec import Meta, Struct

from core.model.field_types import PRINTABLE
from core.sessions.personal_keys import DEFAULT_DAYS, LONGEST_DAYS, check_signed_in
from core.sessions.sessions import Identity, PersonalKey
from delivery.http.context import ApiRequest, Request, Response, no_content
from delivery.http.fields import RequestModel
from delivery.http.input.reading import part
from delivery.http.route import NoParameters, People, Repeats, Route, Routes


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


async def list_own(request: Request[None, NoParameters]) -> Response:
    keys = await request.services.personal_keys.list(check_signed_in(request.identity))
    return Response(PersonalKeyList([PersonalKeyView.of(key) for key in keys]))


async def create(request: Request[PersonalKeyRequest, NoParameters]) -> Response:
    body, identity = request.body, check_signed_in(request.identity)
    lifetime = timedelta(days=body.days)
    key, secret = await request.services.personal_keys.create(identity, body.name, body.scopes, lifetime)
    return Response(PersonalKeyCreated(PersonalKeyView.of(key), secret), 201, {"Cache-Control": "no-store"})


async def revoke(request: Request[None, NoParameters]) -> Response:
    await request.services.personal_keys.revoke(check_signed_in(request.identity), part(request, "id"))
    return no_content()


async def list_of_person(request: Request[None, NoParameters]) -> Response:
    """Raises NotFound USER_NOT_FOUND."""
    keys = await request.services.personal_keys.list(await _of_person(request))
    return Response(PersonalKeyList([PersonalKeyView.of(key) for key in keys]))


async def revoke_of_person(request: Request[None, NoParameters]) -> Response:
    """Revoke a key that its person has lost. Raises NotFound USER_NOT_FOUND, KEY_NOT_FOUND."""
    await request.services.personal_keys.revoke(await _of_person(request), part(request, "key"))
    return no_content()


async def _of_person(request: ApiRequest) -> Identity:
    tenant = request.tenant
    user = await request.services.core.directory.users.find(tenant, part(request, "id"))
    return Identity.of_person(tenant, user, "", datetime.now(UTC))


ROUTES: Routes = (
    Route("GET", "/v1/me/keys", "List the personal keys of the person who is signed in", "", list_own,
          200, PersonalKeyList, people=People.OWN),
    Route("POST", "/v1/me/keys", "Create a personal key with some of the person's rights; shows it once", "",
          create, 201, PersonalKeyCreated, body=PersonalKeyRequest, people=People.OWN),
    Route("DELETE", "/v1/me/keys/{id}", "Revoke a personal key", "", revoke, 204, repeats=Repeats.STORED,
          people=People.OWN),
    Route("GET", "/v1/users/{id}/keys", "List the personal keys of a person", "manage", list_of_person, 200,
          PersonalKeyList, people=People.BY_SCOPE),
    Route("DELETE", "/v1/users/{id}/keys/{key}", "Revoke a personal key of a person", "manage", revoke_of_person, 204,
          repeats=Repeats.STORED, people=People.BY_SCOPE),
)  # fmt: skip
