"""The preview of a delivery: what a send of the same body would do, and what each person will see."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from core.errors import NotFound
from core.model.clock import to_ms, write_optional_time
from core.model.contacts.addresses import is_group
from core.model.content import Button, Display
from core.model.delivery import Following, NewDelivery, QuotaState, Recipient, Uninformed
from core.model.field_types import Name
from core.model.history_key import Id
from core.model.text.personal import LANGUAGE
from core.orders.follow_ups import FollowedPeople
from core.orders.preview import ChannelPreview, Preview, Unreachable
from couriers.sending.shown import Shown, ShownText, people_who_cannot_answer, shown_in
from delivery.api.deliveries.chat_members import with_names_of_uninformed
from delivery.api.deliveries.content import AttachmentResponse, ContentResponse
from delivery.api.deliveries.sending import DeliveryRequest
from delivery.http.context import Request, Response
from delivery.http.fields import RequestModel
from delivery.http.route import People, Route, Routes

MOST_NAMED = 100
"""People of one kind who are named in a preview, such as those whom no channel reaches; all of them are counted."""


class PreviewQuery(RequestModel, frozen=True):
    """The person whose messages are shown. `recipient`: its id or a part of its name; `number`: from 0, in the order of
    the delivery. Default: all channels; of a personal text, the first person that is reached.
    """

    recipient: Name | UnsetType = UNSET
    number: Annotated[int, Meta(ge=0, le=9_999)] | UnsetType = UNSET


class PreviewChannel(Struct):
    """`people`: with a contact there; `addresses`: messages that go out. `first`: people that have no contact in
    an earlier channel; absent with the strategy all. `parts`: SMS of one message; `total_parts`: of all messages;
    `price`: of one part, as the operator has set it. `reminders`: at most so many messages more, to those who do not
    answer. `only_unanswered`: it is used only for those who have not answered in the other channels by then.
    """

    people: int
    addresses: int
    first: int | UnsetType = UNSET
    parts: int | UnsetType = UNSET
    total_parts: int | UnsetType = UNSET
    price: str | UnsetType = UNSET
    reminders: int | UnsetType = UNSET
    only_unanswered: bool | UnsetType = UNSET


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
        return cls(state.used, limit, max(0, limit - state.used - 1), not state.is_used_up, resets_in)


class PreviewPerson(Struct):
    """A person. `why`: `no_contact`, `person_blocked` or `opted_out`, of one who cannot be reached; `channels`: those
    that reach it. `number`: of one whose messages are shown, from 0.
    """

    id: Id
    name: str | None
    why: str | UnsetType = UNSET
    channels: list[str] | UnsetType = UNSET
    number: int | UnsetType = UNSET


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
    can be sent there. `subject`: of a mail; "" elsewhere. `answer_by`: how a question is answered there: press,
    text, number or link; absent if it cannot be, or there is none.
    """

    messages: list[PreviewText]
    buttons: list[list[Button]]
    keyboard: list[list[str]]
    files: list[AttachmentResponse]
    choices: int
    not_shown: list[str]
    empty: bool
    subject: str
    answer_by: str | UnsetType = UNSET

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
            answer_by=shown.answer_by or UNSET,
        )


class PreviewFallback(Struct):
    """People in whose text the default of a mark `{{field|default}}` stands. `first`: the first 100 of them."""

    people: int
    first: list[PreviewPerson]

    @classmethod
    def of_people(cls, people: Sequence[Recipient]) -> "PreviewFallback":
        return cls(len(people), [PreviewPerson(one.id, one.name) for one in people[:MOST_NAMED]])


class PreviewFollowUp(Struct):
    """The delivery that a follow-up follows. `left_out`: why → the number of its recipients that are left out:
    `reached_meanwhile`, `answered`, `gone`. `waiting`: the others, which it may still reach itself.
    """

    id: str
    of: Following
    left_out: Mapping[str, int]
    waiting: int

    @classmethod
    def of_people(cls, found: FollowedPeople) -> "PreviewFollowUp":
        return cls(found.follow_up.key.id, found.follow_up.of, found.left_out, found.waiting)


class PreviewResponse(Struct):
    """The effect that a send of the same body would have now. `no_contact`, `person_blocked`, `opted_out`: people
    that no channel reaches; `unreachable`: the first 100 of them. `duplicates`: people who are addressed more than
    once, and get it once. `moved_from`: the requested time, if quiet hours move the delivery to about `deliver_at`;
    null: at once.
    `cannot_answer`: people who are reached, but in no channel in which they can answer the question. `quota`: null
    without one. `recipient`: the person whose messages are shown. `fields`: of a personal text;
    `text`, `content`: of this person, as they are written; `fallback`: absent if everybody has every value.
    `follow_up`: absent unless it is one.
    `languages`: how many people get each of the `texts`, and `text` (`base`); absent without texts by language.
    `uninformed`: of a delivery to guardians, those that get nothing; `unfilled`: marks of the text that nothing fills;
    `empty_office`: replies go to an office without members. Absent if there are none.
    """

    people: int
    channels: dict[str, PreviewChannel]
    no_contact: int
    person_blocked: int
    opted_out: int
    later: int
    unreachable: list[PreviewPerson]
    duplicates: int
    deliver_at: str | None
    moved_from: str | None
    cannot_answer: int
    quota: PreviewQuota | None
    shown: dict[str, PreviewShown]
    recipient: PreviewPerson | None
    fields: Sequence[str] | UnsetType = UNSET
    text: str | UnsetType = UNSET
    content: ContentResponse | UnsetType = UNSET
    fallback: PreviewFallback | UnsetType = UNSET
    follow_up: PreviewFollowUp | UnsetType = UNSET
    languages: Mapping[str, int] | UnsetType = UNSET
    uninformed: Sequence[Uninformed] | UnsetType = UNSET
    unfilled: Sequence[str] | UnsetType = UNSET
    empty_office: bool | UnsetType = UNSET

    @classmethod
    def of(
        cls,
        found: Preview,
        shown: Mapping[str, Shown],
        displays: Mapping[str, Display],
        number: int | None,
        parts: Mapping[str, int],
    ) -> "PreviewResponse":
        """`number`: of the person whose messages are shown. `parts`: of all personal texts by channel."""
        personal = found.delivery.personal
        text, content = found.message_of(number or 0)
        why = Counter(str(one.why) for one in found.unreachable)
        return cls(
            people=found.people,
            channels={
                name: _channel(found, name, one, shown.get(name), displays[name], parts.get(name))
                for name, one in found.channels.items()
            },
            no_contact=why["no_contact"],
            person_blocked=why["person_blocked"],
            opted_out=why["opted_out"],
            later=found.later,
            unreachable=_named(found.unreachable),
            duplicates=found.repeated,
            deliver_at=write_optional_time(found.delivery.deliver_at),
            moved_from=write_optional_time(found.delivery.moved_from),
            cannot_answer=people_who_cannot_answer(found, displays),
            quota=PreviewQuota.of(found.quota) if found.quota else None,
            shown={name: PreviewShown.of(one) for name, one in shown.items()},
            recipient=None if number is None else _reached(found, number),
            fields=[one for one in personal.fields if one != LANGUAGE] if personal else UNSET,
            text=text if personal else UNSET,
            content=ContentResponse.of(content) if personal and content else UNSET,
            fallback=PreviewFallback.of_people(found.fallbacks) if found.fallbacks else UNSET,
            languages=found.languages or UNSET,
            uninformed=found.delivery.uninformed or UNSET,
            unfilled=found.delivery.unfilled or UNSET,
            empty_office=found.delivery.empty_office or UNSET,
            follow_up=PreviewFollowUp.of_people(found.followed) if found.followed else UNSET,
        )


def _channel(
    found: Preview, name: str, one: ChannelPreview, shown: Shown | None, display: Display, parts: int | None
) -> PreviewChannel:
    channel = PreviewChannel(one.people, one.addresses)
    if found.is_in_order:
        channel.first = one.first
    if shown and shown.parts:
        channel.parts, channel.total_parts = shown.parts, shown.parts * one.addresses
    if parts is not None:
        channel.total_parts = parts
    if display.limits.price:
        channel.price = display.limits.price
    _add_asking_again(channel, name, found.delivery)
    return channel


def _add_asking_again(channel: PreviewChannel, name: str, delivery: NewDelivery) -> None:
    question = delivery.question
    if question and question.remind:
        channel.reminders = question.planned_reminders(to_ms(delivery.deliver_at or datetime.now(UTC))) * channel.people
    if question and question.escalate and name in question.escalate.channels:
        channel.only_unanswered = True


def _reached(found: Preview, number: int) -> PreviewPerson:
    person = found.delivery.recipients[number]
    return PreviewPerson(person.id, person.name, channels=list(found.channels_of(person)), number=number)


def _example(found: Preview, channel: str, number: int | None) -> str:
    """Return an address of a channel: of the person with this number, or of anybody; a group chat only if there is no
    private one. "" if there is none.
    """
    people = found.delivery.recipients if number is None else [found.delivery.recipients[number]]
    addresses = [address for one in people for address in one.contacts.get(channel, ())]
    return min(addresses, key=lambda one: is_group(channel, one), default="")


def _named(unreachable: Sequence[Unreachable]) -> list[PreviewPerson]:
    return [PreviewPerson(one.recipient.id, one.recipient.name, one.why) for one in unreachable[:MOST_NAMED]]


async def preview(request: Request[DeliveryRequest, PreviewQuery]) -> Response:
    """Return what a send would do. Nothing is written."""
    order = request.body.order(request.tenant, request.options.max_days_ahead)
    found = await request.services.core.sending.preview(order, request.caller)
    number = _number(found, request.query)
    people = found.delivery.recipients
    wanted = found.delivery.channels if number is None else found.channels_of(people[number])
    views = await request.services.core.channels.views()
    # A channel that has never had a courier shows the text alone, as far as is known.
    displays = dict.fromkeys(found.delivery.channels, Display()) | {
        view.name: view.display for view in views if view.display
    }
    question = found.delivery.question if number is None else found.question_of(number)
    message = *found.message_of(number or 0), question
    zone = request.timezone
    shown = {name: shown_in(displays[name], *message, name, _example(found, name, number), zone) for name in wanted}
    parts = _parts(found, displays, zone) if found.delivery.personal or found.asks_in_languages else {}
    said = PreviewResponse.of(found, shown, displays, number, parts)
    if said.uninformed:
        said.uninformed = await with_names_of_uninformed(request, said.uninformed)
    return Response(said)


def _number(found: Preview, query: PreviewQuery) -> int | None:
    """Return the number of the person whose messages are shown: of a personal text, the first person that is reached;
    None: everybody gets the same. Raises NotFound RECIPIENT_NOT_FOUND.
    """
    people = found.delivery.recipients
    if query.recipient:
        number = found.find(query.recipient)
    elif query.number or query.number == 0:
        number = query.number
    elif found.delivery.personal:
        return next((n for n, one in enumerate(people) if found.channels_of(one)), 0)
    else:
        return None
    if number is None or number >= len(people):
        raise NotFound("RECIPIENT_NOT_FOUND", "The delivery has no such recipient.")
    return number


def _parts(found: Preview, displays: Mapping[str, Display], zone: tzinfo) -> Mapping[str, int]:
    """Return, for each channel that sends in parts, how many all texts have: personal ones, or asked in languages."""
    is_personal, people = found.delivery.personal is not None, found.delivery.recipients
    examples = range(len(people)) if is_personal else {one.locale: number for number, one in enumerate(people)}.values()
    total = dict.fromkeys((name for name in found.delivery.channels if displays[name].limits.in_sms), 0)
    for name in total:
        shown = {n: shown_in(displays[name], *found.message_of(n), found.question_of(n), zone=zone) for n in examples}
        parts = {n: one.parts for n, one in shown.items()}
        by_locale = {people[n].locale: parts[n] for n in examples}
        total[name] = sum(
            (parts[n] if is_personal else by_locale[one.locale]) * len(one.contacts[name])
            for n, one in enumerate(people)
            if name in one.contacts
        )
    return total


ROUTES: Routes = (
    Route("POST", "/v1/deliveries/preview", "What a send of the same body would do, and what people will see", "send",
          preview, 200, PreviewResponse, body=DeliveryRequest, query=PreviewQuery, people=People.OWN),
)  # fmt: skip
