"""Choices of a sender: its channels, its quota, and the people that it may address, by name."""

import asyncio
import math
from collections.abc import Sequence
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from core.deliveries.channels import ChannelView
from core.directory.collections import Groups, Supergroups
from core.errors import Forbidden
from core.model.clock import from_ms, write_time
from core.model.content import Display, Feature
from core.model.delivery import QuotaState
from core.model.field_types import IdField, Label, Name
from core.model.history_key import Id
from core.model.people import User, id_text
from core.monitoring.halts import Halt, halt_of
from core.queue.tubes import Tubes
from delivery.http.context import Request, Response
from delivery.http.fields import RequestModel
from delivery.http.route import People, PlainRequest, Route, Routes


class ChannelThrottle(Struct):
    """A wait that the provider has named. `scope`: the account, a method, or a chat."""

    scope: str
    until: str


class ChannelLimits(Struct):
    """`text`, `caption`: UTF-16 code units, null for no limit. `splits`: a longer text goes in several messages.
    `in_sms`: a text is sent and paid in parts. `price`: of one part, as the operator has set it; "" if it is not known.
    """

    text: int | None
    caption: int | None
    splits: bool
    in_sms: bool
    price: str


class ListedChannel(Struct):
    """`known`: a courier of the channel has run on this server. `halted`: why an operator is needed, "" if none is.
    `informed`: how many people got a message that it has halted; absent unless it has. `paused`: true while an operator
    lets nothing of it be sent; otherwise absent.
    `shows`: what it has besides a text; `as_text`: what it writes as lines of the text.
    """

    channel: str
    known: bool
    halted: str
    shows: list[Feature]
    as_text: list[Feature]
    limits: ChannelLimits
    throttles: list[ChannelThrottle]
    informed: int | UnsetType = UNSET
    paused: bool | UnsetType = UNSET

    @classmethod
    def of(
        cls, view: ChannelView, throttles: list[ChannelThrottle], halt: Halt | None, *, paused: bool
    ) -> "ListedChannel":
        display = view.display or Display()
        limits = display.limits
        return cls(
            channel=view.name,
            known=view.facts is not None,
            halted=(view.facts.halted if view.facts else "") or (halt.reason if halt else ""),
            shows=sorted(display.shows),
            as_text=sorted(display.as_text),
            limits=ChannelLimits(
                limits.text or None, limits.caption or None, limits.splits, limits.in_sms, limits.price
            ),
            throttles=throttles,
            informed=halt.informed if halt else UNSET,
            paused=paused or UNSET,
        )


class ChannelList(Struct):
    """All channels."""

    channels: list[ListedChannel]


async def list_all(request: PlainRequest) -> Response:
    """Return all known channels, in the order in which a delivery without `channels` uses them."""
    core = request.services.core
    found, pauses = [], await Tubes(core.store).pauses()
    for view in await core.channels.views():
        throttles = await core.queue.throttles_of(view.name)
        listed = [ChannelThrottle(scope, write_time(from_ms(until))) for scope, until in sorted(throttles.items())]
        found.append(ListedChannel.of(view, listed, await _halt(request, view.name), paused=view.name in pauses))
    return Response(ChannelList(found))


async def _halt(request: PlainRequest, channel: str) -> Halt | None:
    """Return the stop of the account by which the tenant sends; None while it works."""
    stops = [await halt_of(request.services.core.store, channel, tenant) for tenant in ("", request.tenant)]
    return next((one for one in stops if one and not one.is_over), None)


class QuotaQuery(RequestModel, frozen=True):
    """The sender. `role`: of a sender that the directory does not know; default: as in its last delivery."""

    sender: Name
    role: Label | UnsetType = UNSET


class QuotaResponse(Struct):
    """`used`: deliveries that count towards the quota now. `limit` is null without a quota. `resets_in`: seconds until
    the first of them no longer counts, 0 if there is none.
    """

    used: int
    limit: int | None
    resets_in: int

    @classmethod
    def of(cls, state: QuotaState) -> "QuotaResponse":
        return cls(state.used, state.limit, math.ceil(state.resets_in.total_seconds()))


async def show_quota(request: Request[None, QuotaQuery]) -> Response:
    """Return how much of its quota a sender has used."""
    query = request.query
    request.check_own(query.sender, "sender")
    return Response(
        QuotaResponse.of(await request.services.core.sending.quota(request.tenant, query.sender, query.role or None))
    )


_MOST = 20


class AddresseeQuery(RequestModel, frozen=True):
    """Beginnings of words of the name of a person, in any case; of a group any part of its title, or its id."""

    name: Annotated[str, Meta(min_length=1, max_length=256)]


class FoundAddressee(Struct):
    """A person. `groups`: the titles of its groups that are not virtual, which distinguish people of one name."""

    id: IdField
    name: str | None
    groups: list[str]


class OwnedGroup(Struct):
    """A group or supergroup that a person may write to. `size`: the number of its people, of a supergroup that of its
    groups.
    """

    id: IdField
    title: str | None
    size: int


class AddresseeList(Struct):
    """At most 20 people, and at most 20 groups and supergroups."""

    people: list[FoundAddressee]
    groups: list[OwnedGroup]
    supergroups: list[OwnedGroup]


async def find(request: Request[None, AddresseeQuery]) -> Response:
    """Return the people and groups that the caller may address. A person sees no contact of them. Raises Forbidden
    SCOPE_MISSING for a key that may not read the directory.
    """
    if request.identity.person is None and not request.key.permits("manage"):
        raise Forbidden("SCOPE_MISSING", "This needs an API key with the scope manage.")
    core, caller, name = request.services.core, request.caller, request.query.name
    found = await core.sending.find_people(caller, name, _MOST)
    people = await asyncio.gather(*(_addressee(request, user) for user in found))
    wanted = name.strip().casefold()
    groups_for = await core.sending.groups_for(caller)
    titled = [one for one in groups_for if wanted in one.title.casefold() or id_text(one.id) == name.strip()][:_MOST]
    groups, supergroups = ([one.id for one in titled if one.kind == kind] for kind in ("group", "supergroup"))
    return Response(
        AddresseeList(
            list(people),
            await with_sizes(core.directory.groups, request.tenant, groups),
            await with_sizes(core.directory.supergroups, request.tenant, supergroups),
        )
    )


async def with_sizes(collections: Groups | Supergroups, tenant: str, ids: Sequence[Id]) -> list[OwnedGroup]:
    found = [one for one in await collections.lookup(tenant, ids) if one]
    sizes = await collections.sizes(tenant, [one.id for one in found])
    return [OwnedGroup(one.id, one.title, size) for one, size in zip(found, sizes, strict=True)]


async def _addressee(request: Request[None, AddresseeQuery], user: User) -> FoundAddressee:
    groups = await request.services.core.directory.groups.with_member(request.tenant, user.id)
    return FoundAddressee(user.id, user.name, [one.title or str(one.id) for one in groups if not one.virtual])


ROUTES: Routes = (
    Route("GET", "/v1/channels", "List the channels: what each shows, its limits and throttles", "read", list_all,
          200, ChannelList, people=People.BY_SCOPE),
    Route("GET", "/v1/quota", "How much of its quota a sender has used", "read", show_quota, 200, QuotaResponse,
          query=QuotaQuery, people=People.OWN),
    Route("GET", "/v1/addressees", "Find the people and groups the caller may write to, by name", "send", find, 200,
          AddresseeList, query=AddresseeQuery, people=People.OWN),
)  # fmt: skip
