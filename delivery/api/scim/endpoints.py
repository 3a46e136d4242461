"""The endpoints of SCIM 2.0. A key with the scope `scim` is a source of people, and sees and changes only its own."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import UNSET, Struct, UnsetType

from core.admission.api_keys import SCIM
from core.errors import Forbidden, NotFound, Refused
from core.model.json_form import Json, JsonObject
from core.model.people import User, id_text
from delivery.http.context import ApiRequest, Request, Response, no_content
from delivery.http.decoding import check_content_type, parse
from delivery.http.receiving import read_body
from delivery.http.responses.problems import SCIM_BASE, SCIM_TYPE, SCIM_TYPES, scim_refusal
from delivery.http.route import NoParameters, Route, Routes

if TYPE_CHECKING:  # needs a library that need not be installed
    from scim2_models.path import FilterNode

    from delivery.api.scim.resources import ScimGroup, ScimPerson, ScimSearch

_LIBRARY = ("scim2_models", "pydantic", "lark")


class ScimQuery(Struct, rename="camel"):
    """The filter, the page and the attributes of a request. Other parameters, such as Entra's flags, are left out."""

    filter: str | UnsetType = UNSET
    start_index: str | UnsetType = UNSET
    count: str | UnsetType = UNSET
    attributes: str | UnsetType = UNSET
    excluded_attributes: str | UnsetType = UNSET


Found = TypeVar("Found")
Shape = TypeVar("Shape", bound="ScimPerson | ScimGroup")


class ScimCollection(Protocol[Found, Shape]):
    """People or groups: `delivery.api.scim.people.ScimPeople`, `delivery.api.scim.groups.ScimGroups`."""

    body_limit: int

    async def create(self, payload: Json) -> Shape: ...

    async def replace(self, given: str, payload: Json) -> Shape: ...

    async def patch(self, given: str, payload: Json) -> Shape: ...

    async def delete(self, given: str) -> None: ...

    async def find(self, given: str) -> tuple[Found, Shape]: ...

    def asked(self, query: Mapping[str, str]) -> "ScimSearch[Shape]": ...

    def search(self, condition: "FilterNode | None") -> AsyncIterator[Found]: ...

    async def resource_of(self, found: Found, *, with_members: bool) -> Shape: ...

    async def members_of(self, given: str) -> Sequence[User] | None: ...


ScimRequest = Request[None, ScimQuery]
_COLLECTIONS = {"Users": ("people", "ScimPeople"), "Groups": ("groups", "ScimGroups")}


class ScimEndpoints(Generic[Found, Shape]):
    """The operations on people or groups. `name`: the part of their addresses."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def create(self, request: ScimRequest) -> Response:
        collection = await self._collection(request)
        payload = await _payload(request, collection.body_limit)
        return await self._shown(request, collection, await collection.create(payload), status=201)

    async def replace(self, request: ScimRequest) -> Response:
        collection = await self._collection(request)
        payload = await _payload(request, collection.body_limit)
        return await self._shown(request, collection, await collection.replace(request.part("id"), payload))

    async def patch(self, request: ScimRequest) -> Response:
        collection = await self._collection(request)
        payload = await _payload(request, collection.body_limit)
        return await self._shown(request, collection, await collection.patch(request.part("id"), payload))

    async def show(self, request: ScimRequest) -> Response:
        collection = await self._collection(request)
        found = (await collection.find(request.part("id")))[0]
        with_members = collection.asked(_query(request)).names("members")
        resource = await collection.resource_of(found, with_members=with_members)
        return await self._shown(request, collection, resource)

    async def delete(self, request: ScimRequest) -> Response:
        """Block a person, or delete a group."""
        await (await self._collection(request)).delete(request.part("id"))
        return no_content()

    async def search(self, request: ScimRequest) -> Response:
        """Return a page of those that fit a filter. It is counted anew for each page, as SCIM wants it."""
        collection = await self._collection(request)
        search = collection.asked(_query(request))
        found: list[JsonObject] = []
        total, page = 0, range(search.start, search.start + search.count)
        async for one in collection.search(search.condition):
            is_shown = total + 1 in page
            if search.filter or is_shown:
                resource = await collection.resource_of(one, with_members=search.names("members"))
                if not search.fits(resource):
                    continue
                if is_shown:
                    found.append(await self._document(request, collection, resource, search))
            total += 1
        document = {
            "schemas": ["urn:ietf:params:scim:api:messages:2.0:ListResponse"],
            "totalResults": total,
            "startIndex": search.start,
            "itemsPerPage": len(found),
            "Resources": found,
        }
        return _response(document)

    async def _collection(self, request: ApiRequest) -> ScimCollection[Found, Shape]:
        await _library()
        module, name = _COLLECTIONS[self._name]
        people = import_module("delivery.api.scim.people")
        directory = request.services.core.directory
        columns = await directory.syncs.columns(request.tenant)
        made: ScimCollection[Found, Shape] = getattr(import_module(f"delivery.api.scim.{module}"), name)(
            people.ScimSource(directory, request.tenant, request.key.name, columns)
        )
        return made

    async def _shown(
        self, request: ScimRequest, collection: ScimCollection[Found, Shape], resource: Shape, status: int = 200
    ) -> Response:
        search = collection.asked(_query(request))
        document = await self._document(request, collection, resource, search)
        return _response(document, status, {"Location": self._location(request, resource.id or "")})

    async def _document(
        self,
        request: ScimRequest,
        collection: ScimCollection[Found, Shape],
        resource: Shape,
        search: "ScimSearch[Shape]",
    ) -> JsonObject:
        """Return a resource as JSON. Members are many, so that only those are read that are wanted."""
        given = resource.id or ""
        document = search.document(resource, self._location(request, given))
        members = await collection.members_of(given) if search.shows("members") else None
        return {**document, "members": [_member(request, one) for one in members]} if members else document

    def _location(self, request: ApiRequest, given: str) -> str:
        return f"{_base(request)}/{self._name}/{quote(given, safe='')}"


def _member(request: ApiRequest, member: User) -> Mapping[str, str]:
    given = id_text(member.id)
    shown = {"value": given, "$ref": f"{_base(request)}/Users/{quote(given, safe='')}"}
    return {**shown, "display": member.name} if member.name else shown


def discover(name: str) -> Callable[[Request[None, ScimQuery]], Awaitable[Response]]:
    """Return the endpoint of what the service says of itself."""

    async def show(request: Request[None, ScimQuery]) -> Response:
        found: Sequence[JsonObject] = (await _library()).discovery(name, _base(request))
        if name == "ServiceProviderConfig":
            return _response(found[0])
        if given := request.http.match_info.get("id"):
            one = next((one for one in found if one["id"] == given), None)
            if one is None:
                raise NotFound("ROUTE_NOT_FOUND", f"There is no {given!r} in {name}.")
            return _response(one)
        if not isinstance(request.query.filter, UnsetType):
            raise Forbidden("SCIM_NOT_FILTERED", "What the service says of itself has no filter (RFC 7644, section 4).")
        document = {"totalResults": len(found), "startIndex": 1, "itemsPerPage": len(found), "Resources": found}
        return _response({"schemas": ["urn:ietf:params:scim:api:messages:2.0:ListResponse"], **document})

    return show


async def _library() -> ModuleType:
    """Return the module that needs scim2-models, which takes half a second to import. Raises Refused
    SCIM_NOT_INSTALLED.
    """
    try:
        return await asyncio.to_thread(import_module, "delivery.api.scim.resources")
    except ModuleNotFoundError as missing:
        if missing.name not in _LIBRARY:
            raise
        raise Refused("SCIM_NOT_INSTALLED", "SCIM needs a library: pip install 'ada[scim]'") from None


async def _payload(request: ApiRequest, limit: int) -> Json:
    """Return the body. `limit`: in bytes. Raises `Refused`; Invalid SCIM_VALUE_WRONG."""
    check_content_type(request.http, SCIM_TYPES)
    raw = await read_body(request.http, min(limit, request.options.body_limit), request.options.body_timeout)
    payload = await asyncio.to_thread(parse, raw)
    try:
        msgspec.json.encode(payload)
    except UnicodeEncodeError:
        raise scim_refusal("invalidValue", "Half of a surrogate pair is not a character.") from None
    return payload


def _query(request: ScimRequest) -> dict[str, str]:
    given = {name: getattr(request.query, field) for name, field in _PARAMETERS.items()}
    return {name: value for name, value in given.items() if not isinstance(value, UnsetType)}


_PARAMETERS = {
    "filter": "filter",
    "startIndex": "start_index",
    "count": "count",
    "attributes": "attributes",
    "excludedAttributes": "excluded_attributes",
}


def _base(request: ApiRequest) -> str:
    http = request.http
    return f"{request.options.public_url.rstrip('/') or f'{http.scheme}://{http.host}'}{SCIM_BASE}"


def _response(document: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(document, status, {"Content-Type": SCIM_TYPE, **(headers or {})})


def _routes_of(path: str, what: str, endpoints: ScimEndpoints[Found, Shape]) -> list[Route]:
    one = f"{path}/{{id}}"
    return [
        Route("POST", path, f"SCIM: add {what}", SCIM, endpoints.create, 201, SCIM_TYPE, query=ScimQuery,
              upload=SCIM_TYPE),
        Route("GET", path, f"SCIM: list those that fit a filter ({what})", SCIM, endpoints.search, 200, SCIM_TYPE,
              query=ScimQuery),
        Route("GET", one, f"SCIM: show {what}", SCIM, endpoints.show, 200, SCIM_TYPE, query=ScimQuery),
        Route("PUT", one, f"SCIM: replace {what}", SCIM, endpoints.replace, 200, SCIM_TYPE, query=ScimQuery,
              upload=SCIM_TYPE),
        Route("PATCH", one, f"SCIM: change {what}", SCIM, endpoints.patch, 200, SCIM_TYPE, query=ScimQuery,
              upload=SCIM_TYPE),
        Route("DELETE", one, f"SCIM: block a person, or delete a group ({what})", SCIM, endpoints.delete, 204,
              query=NoParameters),
    ]  # fmt: skip


def _discovery_of(name: str) -> list[Route]:
    path, endpoint, summary = f"{SCIM_BASE}/{name}", discover(name), f"SCIM: what the service supports ({name})"
    paths = [path] if name == "ServiceProviderConfig" else [path, f"{path}/{{id}}"]
    return [Route("GET", one, summary, SCIM, endpoint, 200, SCIM_TYPE, query=ScimQuery) for one in paths]


ROUTES: Routes = (
    *_routes_of(f"{SCIM_BASE}/Users", "a person", ScimEndpoints("Users")),
    *_routes_of(f"{SCIM_BASE}/Groups", "a group", ScimEndpoints("Groups")),
    *_discovery_of("ServiceProviderConfig"),
    *_discovery_of("ResourceTypes"),
    *_discovery_of("Schemas"),
)
