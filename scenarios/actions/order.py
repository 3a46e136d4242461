"""Orders a delivery in the name of the person who writes: its groups, its quota, its history (C-115)."""

from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import Annotated

from core.deliveries.channels import ChannelView
from core.errors import Invalid, QuotaExceeded
from core.model.clock import from_ms
from core.model.delivery import Accepted, Audience, NewDelivery, QuotaState, Repeat, Sender, Strategy
from core.model.states import DeliveryState
from core.model.text.text_marks import plain_text
from core.model.text.text_parts import sms_parts
from core.orders import Addressee, AnyAddressee, Caller, Order
from core.orders.check import TimePassed, TypedTime, check_time, read_time
from core.orders.choices import addressee
from core.orders.preview import Preview
from core.orders.question_rules import check_question
from core.updates.rights import origin_of
from couriers.channel import channels_in_sms
from couriers.sending.shown import people_who_cannot_answer, shown_in
from scenarios.bot.data import Data, Scalar
from scenarios.context import Context
from scenarios.engine import Ending, completed
from scenarios.placeholders.values import as_moment, in_utc
from scenarios.rehearsal import NUMBER, RehearsedStep
from scenarios.schema import ActionType, Attributes, Own, Seen, conversion, types
from scenarios.schema.attributes import Elements, Flag, Verbatim
from scenarios.sending import orders
from scenarios.sending.addressees import ADDRESSEES, nobody_addressed, read_addressees
from scenarios.sending.message import BotMessage, Files, MessageAttributes, attachments_of, content_of, message
from scenarios.sending.person import refused, required_person
from scenarios.words import sentence

_NOW = ("", "now", "сейчас")
_NEVER = "never"


def _is_time(node: Scalar) -> bool:
    """Return whether people may write a time so, perhaps one that is over."""
    if node.text.strip().casefold() in (*_NOW, _NEVER):
        return True
    try:
        return bool(read_time(node.text, datetime.now(UTC), UTC)) or as_moment(node.text, UTC) is not None
    except TimePassed:
        return True


_TIME = types.scalar_type(sentence("time_of_people"), types.TEXT.schema, _is_time)


class OrderAttributes(Attributes, frozen=True):
    """`chosen`: what `choose_addressees` has returned."""

    text: Annotated[
        Verbatim, Seen("The text of the message, in HTML unless `parse_mode` says otherwise.", may_be_empty=True)
    ] = ""
    attachment: Annotated[Files, Seen("Files; `{attachments}` are those of the event.", may_be_empty=True)] = None
    parse_mode: Annotated[
        str,
        types.choice("HTML", "MarkdownV2"),
        conversion.text,
        Seen("How marks in the text are written.", default="HTML"),
    ] = ""
    to: Annotated[
        Sequence[Addressee],
        ADDRESSEES,
        read_addressees,
        Own("To whom, as in `send`; without it to those whom `choose_addressees` has returned."),
    ] = ()
    chosen: Annotated[Elements, Seen()] = ()
    channels: Annotated[orders.Channels, Own("The channels; without it all of them. `first`: until one reaches.")] = (
        orders.WrittenChannels()
    )
    deliver_at: Annotated[
        str,
        _TIME,
        conversion.text,
        Own("When, as people write it: `14:30`, `tomorrow 9:00`, `25.11 14:30`, or ISO 8601. At once without it."),
    ] = ""
    answer: Annotated[orders.Asked, Own("Asks with the message: " + orders.ASKED_HELP)] = ()
    until: Annotated[
        str,
        _TIME,
        conversion.text,
        Own("With `answer`: when the question closes, written as `deliver_at`. `never`, or without it, by hand."),
    ] = ""
    audience: orders.WrittenAudience = None
    preview: Annotated[
        Flag, Own("Whether nothing is sent: the action returns what it would do, or why it would be refused.")
    ] = False

    @property
    def message(self) -> MessageAttributes:
        return MessageAttributes(self.text, attachment=self.attachment, parse_mode=self.parse_mode)

    def addressees(self) -> Sequence[AnyAddressee]:
        """Raises Invalid NOBODY_ADDRESSED."""
        found = self.to or [addressee(ref) for ref in self.chosen]
        if not found:
            raise nobody_addressed()
        return found


async def execute(context: Context, written: OrderAttributes) -> Ending:
    """Order once, however often it is executed. Raises Refused."""
    context.require("send")
    user, services = await required_person(context), context.services
    now = from_ms(services.now_ms())
    due = due_of(written.deliver_at, now, services.timezone)
    files = attachments_of(written.attachment, context.folders, context.warn)
    said = said_by(written, bool(files))
    closes = closing_of(written, now, services.timezone)
    delivery = NewDelivery(
        tenant=services.tenant,
        sender=Sender(user.id, user.name, user.role),
        text=said.text,
        recipients=(),
        channels=written.channels.named,
        strategy=written.channels.strategy or Strategy.ALL,
        origin=origin_of(context.event),
        deliver_at=due.at if due else None,
        content=orders.needed(content_of(said, files, {}, same_chat=False), said.text),
        question=orders.question_of(written.answer, said.text, closes.at if closes else None),
    )
    order = Order(delivery, written.addressees(), audience=written.audience or Audience.STUDENTS)
    caller = Caller(services.tenant, person=user)
    if written.preview:
        seen = await services.core.sending.preview(order, caller)
        _check_quota(seen.quota)
        told = _told(said, seen.delivery.deliver_at, due, closes, services.timezone)
        return completed({**told, **_previewed(seen, await services.core.channels.views(), services.timezone)})
    accepted = await services.core.sending.send(order, caller, Repeat(context.identity, "scenario"))
    later = accepted.deliver_at if accepted.state is DeliveryState.SCHEDULED else None
    return completed({**_ordered(accepted), **_told(said, later, due, closes, services.timezone)})


def _ordered(accepted: Accepted) -> dict[str, Data]:
    return {
        "delivery_id": accepted.key.id,
        "people": accepted.recipients,
        "uninformed": len(accepted.uninformed),
        "unfilled": ", ".join(accepted.unfilled),
        "moved": accepted.moved_from is not None,
    }


def rehearse(step: RehearsedStep, written: OrderAttributes) -> Ending:
    """Everybody is one person with a contact everywhere."""
    now, zone = step.now, step.zone
    due, said, closes = due_of(written.deliver_at, now, zone), said_by(written), closing_of(written, now, zone)
    written.addressees()
    if question := orders.question_of(written.answer, said.text, closes.at if closes else None):
        check_question(question, due.at if due else None, now)
    told = {
        "people": 1,
        "uninformed": 0,
        "unfilled": "",
        "moved": False,
        **_told(said, due.at if due else None, due, closes, zone),
    }
    if written.preview:
        return completed({**told, "unreachable": 0, "sms_people": 1, "cannot_answer": 0})
    check_time(due.at if due else now, now, is_far=False)
    step.sent = said
    return completed({**told, "delivery_id": f"0.{NUMBER}.1000000000000000000"})


def said_by(written: OrderAttributes, has_files: bool | None = None) -> BotMessage:
    """Return the message. Raises Invalid TEXT_EMPTY."""
    if (said := message(written.message, has_files)) is None:
        raise Invalid("TEXT_EMPTY", sentence("nothing_send_no_text"), "text")
    return said


def due_of(written: str, now: datetime, zone: tzinfo) -> TypedTime | None:
    """Return when something is due; None: at once. Raises Invalid DELIVER_AT_PAST, TIME_MALFORMED."""
    return None if written.strip().casefold() in _NOW else _typed(written, now, zone, "deliver_at", "DELIVER_AT_PAST")


def closing_of(written: OrderAttributes, now: datetime, zone: tzinfo) -> TypedTime | None:
    """Return when the question closes; None: by hand. Raises Invalid ANSWER_MISSING, UNTIL_PAST, TIME_MALFORMED."""
    if written.until.strip().casefold() in ("", _NEVER):
        return None
    if not written.answer:
        raise Invalid("ANSWER_MISSING", sentence("until_without_answer"), "until")
    return _typed(written.until, now, zone, "until", "UNTIL_PAST")


def _typed(written: str, now: datetime, zone: tzinfo, field: str, passed: str) -> TypedTime:
    """Return a moment that a person has written. `passed`: the code of the refusal of one that is over."""
    try:
        typed = read_time(written, now, zone)
    except TimePassed:
        raise Invalid(passed, sentence("time_has_passed", value=written[:100]), field) from None
    moment = None if typed or as_moment(written, zone) is None else in_utc(written, zone, now)
    if typed is None and moment is None:
        raise Invalid("TIME_MALFORMED", sentence("time_is_written_as", value=written[:100]), field)
    return typed or TypedTime(moment or now)


def _check_quota(quota: QuotaState | None) -> None:
    """Raises QuotaExceeded: a person reads it before it confirms, not after."""
    if quota and quota.limit is not None and quota.is_used_up:
        raise QuotaExceeded(quota.limit, quota.period, quota.resets_in)


def _previewed(seen: Preview, views: Sequence[ChannelView], zone: tzinfo) -> dict[str, Data]:
    by_sms = [seen.channels[name].people for name in channels_in_sms() if name in seen.channels]
    displays = {one.name: one.display for one in views if one.display and one.name in seen.channels}
    shown = [shown_in(one, *seen.message_of(0), seen.delivery.question, zone=zone) for one in displays.values()]
    parts = max((one.parts for one in shown), default=0)
    return {
        "people": seen.people,
        "uninformed": len(seen.delivery.uninformed),
        "unfilled": ", ".join(seen.delivery.unfilled),
        "unreachable": len(seen.unreachable),
        "sms_people": sum(by_sms),
        "cannot_answer": people_who_cannot_answer(seen, displays),
        "moved": seen.delivery.moved_from is not None,
        **({"sms_parts": parts} if parts else {}),
    }


def _told(
    said: BotMessage, at: datetime | None, due: TypedTime | None, closes: TypedTime | None, zone: tzinfo
) -> dict[str, Data]:
    return {
        "sms_parts": sms_parts(plain_text(said.text, said.mode)),
        "deliver_at": f"{at.astimezone(zone):%d.%m.%Y %H:%M}" if at else "",
        "until": f"{closes.at.astimezone(zone):%d.%m.%Y %H:%M}" if closes else "",
        "skipped": (due.skipped if due else "") or (closes.skipped if closes else ""),
    }


ACTION = ActionType(
    name="order",
    help="Sends a message to groups and people in the name of the person who writes, who must be linked: its groups,"
    " its quota and quiet hours hold, and it finds the message in its history. The action completes when it is stored.",
    attributes=OrderAttributes,
    placeholder=True,
    one_of=("text", "attachment"),
    returns={
        "delivery_id": "the id of the delivery; none with `preview`",
        "people": "how many people it goes to",
        "uninformed": "with `audience`: how many children have no guardian, and how many guardians are blocked for one",
        "unfilled": "marks of the text such as `\\{\\{name\\}\\}`, which everybody gets as they are written",
        "deliver_at": "when it is sent, `25.11.2026 14:30`; empty: at once",
        "moved": "whether quiet hours move it",
        "until": "when the question closes, `25.11.2026 14:30`; empty: by hand",
        "skipped": "the time of day, if the clock is put forward over it and the next minute is taken",
        "sms_parts": "how many SMS the text takes; with `preview` together with the question",
        "sms_people": "with `preview`: how many people have a number for SMS",
        "unreachable": "with `preview`: how many people no channel reaches",
        "cannot_answer": "with `preview`: how many people are reached, but only where they cannot answer",
        "code": "why it was refused: `NOT_OWNER`, `QUOTA_EXCEEDED`, `DELIVER_AT_PAST`, `UNTIL_PAST`,"
        " `UNTIL_BEFORE_DUE`, `TIME_MALFORMED`, `OPTION_REPEATED`, …",
        "wait": "of a quota: after how many minutes the next message may be sent, otherwise 0",
        "wait_en": "the same in words, such as `23 h 5 min`",
        "wait_ru": "the same in Russian",
    },
    returns_with={"sms_people": "preview", "unreachable": "preview", "cannot_answer": "preview"},
    execute=execute,
    rehearse=rehearse,
    failure=refused,
)
