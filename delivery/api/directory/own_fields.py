"""The own fields of people that have a type: list, define, take the type away."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from core.model.own_fields import MOST_OPTIONS, FieldType, OwnField
from delivery.http.context import Request, Response, no_content
from delivery.http.fields import RequestModel
from delivery.http.input.reading import part
from delivery.http.route import NoParameters, People, Repeats, Route, Routes


class OwnFieldRequest(RequestModel, frozen=True):
    """The type of an own field."""

    type: FieldType
    choices: Annotated[
        Sequence[Annotated[str, Meta(min_length=1, max_length=256)]],
        Meta(max_length=MOST_OPTIONS, description="the options of a choice"),
    ] = ()


class OwnFieldView(Struct, frozen=True):
    """An own field. `choices`: the options of a choice, in their order."""

    name: str
    type: FieldType
    choices: Sequence[str]

    @classmethod
    def of(cls, one: OwnField) -> "OwnFieldView":
        return cls(one.name, one.type, one.choices)


class OwnFieldList(Struct, frozen=True):
    """All own fields that have a type, by name: at most 50. Every other field of a person is text."""

    fields: Sequence[OwnFieldView]


async def list_all(request: Request[None, NoParameters]) -> Response:
    """Return all own fields that have a type."""
    found = await request.services.core.directory.own_fields.all(request.tenant)
    return Response(OwnFieldList([OwnFieldView.of(one) for one in found.values()]))


async def define(request: Request[OwnFieldRequest, NoParameters]) -> Response:
    """Give an own field a type, or another one."""
    field = OwnField(part(request, "name"), request.body.type, request.body.choices)
    defined = await request.services.core.directory.own_fields.define(request.tenant, field)
    return Response(OwnFieldView.of(defined))


async def undefine(request: Request[None, NoParameters]) -> Response:
    """Make an own field text again; the values of people stay."""
    await request.services.core.directory.own_fields.undefine(request.tenant, part(request, "name"))
    return no_content()


ROUTES: Routes = (
    Route("GET", "/v1/fields", "List the own fields of people that have a type", "manage", list_all, 200,
          OwnFieldList, people=People.BY_SCOPE),
    Route("PUT", "/v1/fields/{name}", "Give an own field a type: text, number, date, choice", "manage", define,
          200, OwnFieldView, body=OwnFieldRequest, repeats=Repeats.STORED, people=People.BY_SCOPE),
    Route("DELETE", "/v1/fields/{name}", "Make an own field text again; its values stay", "manage", undefine, 204,
          repeats=Repeats.STORED, people=People.BY_SCOPE),
)  # fmt: skip
