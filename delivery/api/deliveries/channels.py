"""The channels by which a delivery can go out."""

from msgspec import Struct

from core.deliveries.channels import ChannelView
from core.model.clock import from_ms, write_time
from core.model.content import Feature
from core.model.display import Display
from delivery.http.context import Request, Response
from delivery.http.route import NoParameters, People, Route, Routes


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
    `shows`: what it has besides a text; `as_text`: what it writes as lines of the text.
    """

    channel: str
    known: bool
    halted: str
    shows: list[Feature]
    as_text: list[Feature]
    limits: ChannelLimits
    throttles: list[ChannelThrottle]

    @classmethod
    def of(cls, view: ChannelView, throttles: list[ChannelThrottle]) -> "ListedChannel":
        display = view.display or Display()
        limits = display.limits
        return cls(
            channel=view.name,
            known=view.facts is not None,
            halted=view.facts.halted if view.facts else "",
            shows=sorted(display.shows),
            as_text=sorted(display.as_text),
            limits=ChannelLimits(
                limits.text or None, limits.caption or None, limits.splits, limits.in_sms, limits.price
            ),
            throttles=throttles,
        )


class ChannelList(Struct):
    """All channels."""

    channels: list[ListedChannel]


async def list_all(request: Request[None, NoParameters]) -> Response:
    """Return all known channels, in the order in which a delivery without `channels` uses them."""
    core = request.services.core
    found = []
    for view in await core.channels.views():
        throttles = await core.queue.throttles_of(view.name)
        listed = [ChannelThrottle(scope, write_time(from_ms(until))) for scope, until in sorted(throttles.items())]
        found.append(ListedChannel.of(view, listed))
    return Response(ChannelList(found))


ROUTES: Routes = (
    Route("GET", "/v1/channels", "List the channels: what each shows, its limits and throttles", "read", list_all,
          200, ChannelList, people=People.BY_SCOPE),
)  # fmt: skip
