"""The types of the list of channels."""

from msgspec import Struct

from core.deliveries.channels import ChannelView
from core.model.content import Feature
from core.model.display import Display


class Throttle(Struct):
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


class Channel(Struct):
    """`known`: a courier of the channel has run on this server. `halted`: why an operator is needed, "" if none is.
    `shows`: what it has besides a text; `as_text`: what it writes as lines of the text.
    """

    channel: str
    known: bool
    halted: str
    shows: list[Feature]
    as_text: list[Feature]
    limits: ChannelLimits
    throttles: list[Throttle]

    @classmethod
    def of(cls, view: ChannelView, throttles: list[Throttle]) -> "Channel":
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

    channels: list[Channel]
