"""The resources of SCIM: their schemas with the attributes that Ada uses, and what the service says of itself.

An attribute that a client sends and that is not here is left out. What Entra and Okta do beside the RFC is allowed by
the policy: a member to be removed named by `value`, a path that selects an entry which does not exist yet.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from pydantic import Field, ValidationError
from scim2_models import (
    URN,
    AnyExtension,
    CaseExact,
    ComplexAttribute,
    Context,
    EnterpriseUser,
    Error,
    Extension,
    Group,
    Meta,
    Mutability,
    PatchOp,
    Reference,
    Required,
    Resource,
    ResourceType,
    SCIMException,
    ScimFilter,
    ScimPolicy,
    ScimProvider,
    SearchRequest,
    ServiceProviderConfig,
    Uniqueness,
    User,
)
from scim2_models.path import FilterNode
from scim2_models.resources.service_provider_config import (
    AuthenticationScheme,
    Bulk,
    ChangePassword,
    ETag,
    Filter,
    Sort,
)
from scim2_models.resources.service_provider_config import Patch as PatchSupport

from core.model.json_form import Json, JsonObject
from delivery.http.responses.problems import scim_refusal

MOST_RESULTS = 200
"""Resources of one page."""
MOST_OPERATIONS = 100
"""Of one patch, without those of members; each takes milliseconds, in which other requests wait."""

POLICY = ScimPolicy(
    unknown=ScimPolicy.Unknown.ignore,
    remove_value_as_filter=ScimPolicy.RemoveValue.apply,
    unmatched_path_filter=ScimPolicy.UnmatchedPathFilter.create,
)


class ScimName(ComplexAttribute):
    """The parts of a name."""

    formatted: str | None = None
    family_name: str | None = None
    given_name: str | None = None
    middle_name: str | None = None


class ScimAddress(ComplexAttribute):
    """An e-mail address or a telephone number."""

    value: str | None = None
    type: str | None = None
    primary: bool | None = None


class ScimEmail(ScimAddress):
    """An e-mail address."""


class ScimPhoneNumber(ScimAddress):
    """A telephone number."""


class ScimEnterprise(Extension):
    """Fields of people that a university adds."""

    __schema__ = EnterpriseUser.__schema__

    department: str | None = None


class ScimUser(Resource[AnyExtension]):
    """A person."""

    __schema__ = User.__schema__

    user_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    display_name: str | None = None
    name: ScimName | None = None
    active: bool | None = None
    locale: str | None = None
    preferred_language: str | None = None
    timezone: str | None = None
    emails: list[ScimEmail] | None = None
    phone_numbers: list[ScimPhoneNumber] | None = None


class ScimMember(ComplexAttribute):
    """A member of a group."""

    value: Annotated[str | None, Mutability.immutable, Required.true, CaseExact.true] = None
    ref: Annotated[Reference["User"] | None, Mutability.immutable] = Field(  # type: ignore[type-arg]
        None, serialization_alias="$ref", validation_alias="$ref"
    )
    display: Annotated[str | None, Mutability.read_only] = None


class ScimGroup(Resource[Any]):
    """A group."""

    __schema__ = Group.__schema__

    display_name: Annotated[str | None, Required.true] = None
    members: list[ScimMember] | None = None


ScimPerson = ScimUser[ScimEnterprise]
ScimResource = TypeVar("ScimResource", bound=Resource[Any])

CONFIG = ServiceProviderConfig(
    patch=PatchSupport(supported=True),
    bulk=Bulk(supported=False, max_operations=0, max_payload_size=0),
    filter=Filter(supported=True, max_results=MOST_RESULTS),
    change_password=ChangePassword(supported=False),
    sort=Sort(supported=False),
    etag=ETag(supported=False),
    authentication_schemes=[
        AuthenticationScheme(
            type=AuthenticationScheme.Type.oauthbearertoken,
            name="A key with the scope scim",
            description="Authorization: Bearer ada_… (./ada key create entra --scope scim)",
            primary=True,
        )
    ],
)

PROVIDER = ScimProvider(
    [ScimUser, ScimEnterprise, ScimGroup],
    [ResourceType.from_resource(ScimPerson), ResourceType.from_resource(ScimGroup)],
    CONFIG,
    POLICY,
)


def read(shape: type[ScimResource], payload: Json, *, replaces: bool = False) -> ScimResource:
    """Return the resource of a body. Raises Invalid SCIM_…"""
    context = Context.RESOURCE_REPLACEMENT_REQUEST if replaces else Context.RESOURCE_CREATION_REQUEST
    try:
        return shape.model_validate(payload, scim_ctx=context, scim_provider=PROVIDER)
    except ValidationError as fault:
        raise scim_refusal_of(fault) from None


def operations_of(payload: Json) -> Iterator[JsonObject]:
    """Emit the operations of a body; those of an operation without a path, whose value has paths as names, one by one.
    Raises Invalid SCIM_SYNTAX_WRONG.
    """
    operations = payload.get("Operations", payload.get("operations")) if isinstance(payload, dict) else None
    if not isinstance(operations, list) or not all(isinstance(one, dict) for one in operations):
        raise scim_refusal("invalidSyntax", "A patch has a list of Operations.")
    for one in operations:
        value = one.get("value")
        if one.get("path") is None and isinstance(value, dict):
            paths = [name for name in value if "[" in name or name.casefold() == "members"]
            yield from ({**one, "path": name, "value": value[name]} for name in paths)
            rest = {name: value[name] for name in value if name not in paths}
            if rest or not paths:
                yield {**one, "value": rest}
        else:
            yield one


def patched(shape: type[ScimResource], resource: ScimResource, operations: Sequence[JsonObject]) -> ScimResource:
    """Return a copy of a resource with operations applied. Raises Invalid SCIM_…"""
    if len(operations) > MOST_OPERATIONS:
        raise scim_refusal("invalidValue", f"A patch has at most {MOST_OPERATIONS} operations.")
    payload = {"schemas": [str(PatchOp.__schema__)], "Operations": operations}
    with PROVIDER:
        try:
            patch = PatchOp[shape].model_validate(payload, scim_ctx=Context.RESOURCE_PATCH_REQUEST)  # type: ignore[valid-type]
            changed = resource.model_copy(deep=True)
            patch.patch(changed)
        except (ValidationError, SCIMException) as fault:
            raise scim_refusal_of(fault) from None
        return changed


def scim_refusal_of(fault: ValidationError | SCIMException) -> Exception:
    """Return the refusal of what the library refuses."""
    error = fault.to_error() if isinstance(fault, SCIMException) else Error.from_validation_errors(fault)[0]
    return scim_refusal(error.scim_type or "invalidValue", (error.detail or "").splitlines()[0][:500])


def dump(resource: ScimResource, location: str, parameters: SearchRequest[ScimResource] | None = None) -> JsonObject:
    """Return a resource as JSON, with its address."""
    named = resource.model_copy()
    named.meta = Meta(resource_type=URN(str(resource.__schema__)).rsplit(":", 1)[-1], location=location)
    with PROVIDER:
        return dict(named.model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE, response_parameters=parameters))


@dataclass(frozen=True)
class ScimSearch(Generic[ScimResource]):
    """A question for resources. `start`: counted from 1; `parameters`: the attributes of the answer."""

    filter: ScimFilter[ScimResource] | None
    start: int
    count: int
    parameters: SearchRequest[ScimResource]

    @property
    def condition(self) -> FilterNode | None:
        return self.filter.ast if self.filter else None

    def fits(self, resource: ScimResource) -> bool:
        return self.filter is None or self.filter.match(resource)

    def document(self, resource: ScimResource, location: str) -> JsonObject:
        """Return a resource as JSON, with its address and the attributes that are wanted."""
        return dump(resource, location, self.parameters)

    def shows(self, attribute: str) -> bool:
        """Return whether an attribute that is returned by default is wanted in the answer."""
        excluded = [str(one).casefold() for one in self.parameters.excluded_attributes or ()]
        return not self.parameters.attributes and attribute not in excluded

    def names(self, attribute: str) -> bool:
        """Return whether the filter, or the list of attributes, names an attribute or a part of it."""
        named = [self.condition, *(self.parameters.attributes or ())]
        return any(attribute in str(one).casefold() for one in named)


def search_of(shape: type[ScimResource], query: Mapping[str, str]) -> ScimSearch[ScimResource]:
    """Return the question of a query. Raises Invalid SCIM_FILTER_WRONG, SCIM_VALUE_WRONG."""
    try:
        asked = SearchRequest[shape].model_validate(dict(query), scim_provider=PROVIDER)  # type: ignore[valid-type]
    except (ValidationError, SCIMException) as fault:
        raise scim_refusal_of(fault) from None
    count = MOST_RESULTS if asked.count is None else min(asked.count, MOST_RESULTS)
    return ScimSearch(asked.filter, asked.start_index or 1, count, asked)


def discovery(name: str, base: str) -> Sequence[JsonObject]:
    """Return what the service says of itself: `ServiceProviderConfig` (one), `ResourceTypes`, `Schemas`."""
    found: Sequence[Resource[Any]] = (
        (CONFIG,)
        if name == "ServiceProviderConfig"
        else PROVIDER.resource_types
        if name == "ResourceTypes"
        else PROVIDER.schemas
    )
    return [dump(one, f"{base}/{name}" + (f"/{one.id}" if len(found) > 1 else "")) for one in found]
