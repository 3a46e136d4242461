"""The preview of a delivery: what a send of the same body would do, and what each person will see."""

import math
from collections.abc import Mapping, Sequence

from msgspec import UNSET, Struct, UnsetType

from core.deliveries.channels import ChannelView
from core.errors import NotFound
from core.model.clock import write_optional_time
from core.model.content import Button
from core.model.delivery import Recipient
from core.model.display import Display
from core.model.history_key import Id
from core.model.quota import QuotaState
from core.orders.preview import ChannelPreview, Preview, Unreachable
from couriers.sending.content.shown import Shown, ShownText, shown_in
from delivery.api.deliveries.content import AttachmentResponse
from delivery.api.deliveries.delivery_request import DeliveryRequest
from delivery.api.deliveries.order_validation import ValidationContext, make_order
from delivery.http.context import Request, Response
from delivery.http.fields.types import Name, RequestModel
from delivery.http.route import People, Route, Routes

MOST_NAMED = 100
"""People without a way to be reached who are named in a preview; all of them are counted."""


class PreviewQuery(RequestModel, frozen=True):
    """`recipient`: the id or a part of the name of a person, whose messages are shown; default: all channels."""

    recipient: Name | UnsetType = UNSET


class PreviewChannel(Struct):
    """`people`: with a contact there; `addresses`: messages that go out. `first`: people that have no contact in
    an earlier channel; absent with the strategy all. `parts`: SMS of one message; `total_parts`: of all messages;
    `price`: of one part, as the operator has set it.
    """

    people: int
    addresses: int
    first: int | UnsetType = UNSET
    parts: int | UnsetType = UNSET
    total_parts: int | UnsetType = UNSET
    price: str | UnsetType = UNSET


class PreviewQuota(Struct):
    """The quota of the sender. `used`: before this delivery. `left`: after it. `allowed`: whether it would be accepted
    now. `resets_in`: seconds until `used` next falls.
    """

    used: int
    limit: int
    left: int
    allowed: bool
    resets_in: int

    @classmethod
    def of(cls, state: QuotaState) -> "PreviewQuota":
        limit = state.limit or 0
        resets_in = math.ceil(state.resets_in.total_seconds())
        return cls(state.used, limit, max(0, limit - state.used - 1), state.used < limit, resets_in)


class PreviewPerson(Struct):
    """A person. `why`: `no_contact` or `opted_out`, of one who cannot be reached; `channels`: those that reach it."""

    id: Id
    name: str | None
    why: str | UnsetType = UNSET
    channels: list[str] | UnsetType = UNSET


class PreviewSpan(Struct):
    """A marked range of a text, in UTF-16 code units. `kind`: bold, italic, link, …; `target`: of a link."""

    kind: str
    offset: int
    length: int
    target: str = ""


class PreviewText(Struct):
    """One message as plain text, and its marked ranges."""

    text: str
    spans: list[PreviewSpan]

    @classmethod
    def of(cls, shown: ShownText) -> "PreviewText":
        return cls(shown.text, [PreviewSpan(*span) for span in shown.spans])


class PreviewShown(Struct):
    """The view of a person in one channel. `buttons`: below the message; `keyboard`: in place of the person's own.
    `choices`: how many buttons the text shows with numbers. `not_shown`: what the channel cannot show. `empty`: nothing
    can be sent there. `subject`: of a mail; "" elsewhere.
    """

    messages: list[PreviewText]
    buttons: list[list[Button]]
    keyboard: list[list[str]]
    files: list[AttachmentResponse]
    choices: int
    not_shown: list[str]
    empty: bool
    subject: str

    @classmethod
    def of(cls, shown: Shown) -> "PreviewShown":
        return cls(
            messages=[PreviewText.of(one) for one in shown.messages],
            buttons=[list(row) for row in shown.buttons],
            keyboard=[list(row) for row in shown.keyboard],
            files=[AttachmentResponse.of(one) for one in shown.files],
            choices=shown.choices,
            not_shown=list(shown.not_shown),
            empty=shown.is_empty,
            subject=shown.subject,
        )


class PreviewResponse(Struct):
    """The effect that a send of the same body would have now. `no_contact`, `opted_out`: people that no channel
    reaches; `unreachable`: the first 100 of them. `duplicates`: people who are addressed more than once, and get it
    once. `moved_from`: the requested time, if quiet hours move the delivery to about `deliver_at`; null: at once.
    `quota`: null without one. `recipient`: the person of the query.
    """

    people: int
    channels: dict[str, PreviewChannel]
    no_contact: int
    opted_out: int
    unreachable: list[PreviewPerson]
    duplicates: int
    deliver_at: str | None
    moved_from: str | None
    quota: PreviewQuota | None
    shown: dict[str, PreviewShown]
    recipient: PreviewPerson | None

    @classmethod
    def of(
        cls, found: Preview, shown: Mapping[str, Shown], displays: Mapping[str, Display], person: Recipient | None
    ) -> "PreviewResponse":
        opted_out = sum(one.why == "opted_out" for one in found.unreachable)
        return cls(
            people=found.people,
            channels={
                name: _channel(found, one, shown.get(name), displays.get(name)) for name, one in found.channels.items()
            },
            no_contact=len(found.unreachable) - opted_out,
            opted_out=opted_out,
            unreachable=_named(found.unreachable),
            duplicates=found.repeated,
            deliver_at=write_optional_time(found.delivery.deliver_at),
            moved_from=write_optional_time(found.delivery.moved_from),
            quota=PreviewQuota.of(found.quota) if found.quota else None,
            shown={name: PreviewShown.of(one) for name, one in shown.items()},
            recipient=None if person is None else _reached(found, person),
        )


def _channel(found: Preview, one: ChannelPreview, shown: Shown | None, display: Display | None) -> PreviewChannel:
    channel = PreviewChannel(one.people, one.addresses)
    if found.is_in_order:
        channel.first = one.first
    if shown and shown.parts:
        channel.parts, channel.total_parts = shown.parts, shown.parts * one.addresses
    if display and display.limits.price:
        channel.price = display.limits.price
    return channel


def _reached(found: Preview, person: Recipient) -> PreviewPerson:
    return PreviewPerson(person.id, person.name, channels=list(found.channels_of(person)))


def _named(unreachable: Sequence[Unreachable]) -> list[PreviewPerson]:
    return [PreviewPerson(one.recipient.id, one.recipient.name, one.why) for one in unreachable[:MOST_NAMED]]


async def preview(request: Request[DeliveryRequest, PreviewQuery]) -> Response:
    """Return what a send would do. Nothing is written."""
    order = make_order(request.body, await ValidationContext.of(request))
    found = await request.services.core.sending.preview(order, request.caller)
    person = _person(found, request.query.recipient or None)
    wanted = found.delivery.channels if person is None else found.channels_of(person)
    views = {view.name: view for view in await request.services.core.channels.views()}
    shown = {name: _shown(found, views.get(name)) for name in wanted}
    displays = {name: view.display or Display() for name, view in views.items()}
    return Response(PreviewResponse.of(found, shown, displays, person))


def _person(found: Preview, recipient: str | None) -> Recipient | None:
    """Return the person whose messages are shown. Raises NotFound RECIPIENT_NOT_FOUND."""
    if recipient is None:
        return None
    if (person := found.find(recipient)) is None:
        raise NotFound("RECIPIENT_NOT_FOUND", f"The delivery has no recipient {recipient!r}.")
    return person


def _shown(found: Preview, view: ChannelView | None) -> Shown:
    """Return what a channel shows. A channel that has never had a courier shows the text alone, as far as is known."""
    display = view.display if view and view.display else Display()
    return shown_in(display, found.delivery.text, found.delivery.content)


ROUTES: Routes = (
    Route("POST", "/v1/deliveries/preview", "What a send of the same body would do, and what people will see", "send",
          preview, 200, PreviewResponse, body=DeliveryRequest, query=PreviewQuery, people=People.OWN),
)  # fmt: skip
