"""What a delivery has besides its text: it reaches the courier as far as its channel shows it, the rest is recorded."""

from collections.abc import Collection

import pytest

from core.model.history import OutcomeRecord
from core.model.history_key import HistoryKey
from core.model.json_form import compact_json
from core.model.states import Reason, Status
from couriers.sending import (
    EVERY_FEATURE,
    Attachment,
    AttachmentType,
    Button,
    Content,
    Feature,
    Message,
    Outcome,
    ParseMode,
    Sent,
    Unknown,
)
from couriers.sending.interface import NEVER
from couriers.sending.presentation import present
from tests.support.audited import dump
from tests.support.delivery_progress import Gate
from tests.support.every_verb import report_token
from tests.support.stack import TENANT, FakeCourier, Stack, people, person
from tests.support.waiting import until

PHOTO = Attachment(AttachmentType.PHOTO, url="https://example.org/menu.png")
MENU = Content(
    ParseMode.HTML, ((Button("Да", "yes"), Button("Сайт", url="https://example.org")),), None, (PHOTO,), reply_to="12"
)
ONLY_PHOTO = Content(attachments=(PHOTO,))


async def outcome(stack: Stack, key: HistoryKey, channel: str = "echo") -> OutcomeRecord:
    return (await stack.finished(key)).recipients[0].outcomes[channel]


def same(one: Content | None, other: Content) -> bool:
    """Whether two contents are equal, whatever kind of sequence they have."""
    return compact_json(one) == compact_json(other)


async def test_the_content_arrives_unchanged_where_the_channel_shows_all_of_it(stack: Stack) -> None:
    courier = FakeCourier(shows=EVERY_FEATURE)
    await stack.courier(courier)
    key = (await stack.deliver(person(1), text="<b>Меню</b>", content=MENU)).key
    assert (await outcome(stack, key)).not_shown == ()
    assert courier.attempted[0].text == "<b>Меню</b>"
    assert same(courier.attempted[0].content, MENU)


async def test_what_a_channel_cannot_show_is_recorded_and_the_rest_arrives(stack: Stack) -> None:
    plain, buttons = FakeCourier("plain"), FakeCourier("buttons", shows=frozenset({Feature.INLINE}))
    await stack.courier(plain)
    await stack.courier(buttons)
    recipient = person(1, "plain", "buttons")
    key = (await stack.deliver(recipient, channels=("plain", "buttons"), text="<b>A</b> &amp; B", content=MENU)).key
    assert list((await outcome(stack, key, "plain")).not_shown) == ["parse_mode", "inline", "reply_to", "photo"]
    assert list((await outcome(stack, key, "buttons")).not_shown) == ["parse_mode", "reply_to", "photo"]
    assert (plain.attempted[0].text, plain.attempted[0].content) == ("A & B", None)
    assert same(buttons.attempted[0].content, Content(inline=MENU.inline))


@pytest.mark.parametrize(
    ("shows", "as_text", "text", "reply"),
    [
        ({Feature.REPLY}, (), "Phone?", [["No"]]),
        (EVERY_FEATURE, {Feature.REPLY}, "Phone?\n1. No", None),
        ((), EVERY_FEATURE, "Phone?\n1. No", None),
    ],
)
def test_a_button_that_cannot_ask_for_the_contact_is_left_out(
    shows: Collection[Feature], as_text: Collection[Feature], text: str, reply: object
) -> None:
    given = Content(reply=(("Share", "No"), ("Share too",)), request_contact=("Share", "Share too"))
    found = present("Phone?", given, shows, as_text)
    assert (found.text, found.not_shown) == (text, ("request_contact",))
    assert (found.content.reply if found.content else None) == reply


async def test_marks_that_a_text_does_not_have_are_not_missed(stack: Stack) -> None:
    await stack.courier(FakeCourier())
    key = (await stack.deliver(person(1), text="A &lt; B", content=Content(ParseMode.HTML))).key
    assert (await outcome(stack, key)).not_shown == ()


async def test_what_the_courier_finds_out_is_recorded_too(stack: Stack) -> None:
    def without_file(message: Message) -> Outcome:
        return Sent("5", not_shown=("photo меню|1.png", "text_end"))

    await stack.courier(FakeCourier(respond=without_file, shows=EVERY_FEATURE - {Feature.INLINE}))
    key = (await stack.deliver(*people(2), content=MENU)).key
    found = await outcome(stack, key)
    assert (found.reference, list(found.not_shown)) == ("5", ["inline", "photo меню|1.png", "text_end"])


async def test_a_delivery_of_which_a_channel_shows_nothing_is_refused_without_an_attempt(stack: Stack) -> None:
    courier = FakeCourier()
    await stack.courier(courier)
    found = await outcome(stack, (await stack.deliver(person(1), text="", content=ONLY_PHOTO)).key)
    assert (found.status, found.reason, found.not_shown) == (Status.FAILED, Reason.CONTENT_REFUSED, ("photo",))
    assert courier.attempted == []


async def test_an_empty_text_with_an_attachment_is_sent(stack: Stack) -> None:
    courier = FakeCourier(shows=EVERY_FEATURE)
    await stack.courier(courier)
    assert (await outcome(stack, (await stack.deliver(person(1), text="", content=ONLY_PHOTO)).key)).status == "sent"
    assert courier.attempted[0].text == ""


async def test_a_delivery_report_keeps_what_was_not_shown(stack: Stack) -> None:
    await stack.courier(FakeCourier())
    key = (await stack.deliver(person(1), content=ONLY_PHOTO)).key
    await outcome(stack, key)
    assert await stack.deliveries.record_report(await report_token(stack, key), Status.DELIVERED, "r")
    found = await outcome(stack, key)
    assert (found.status, found.reference, found.not_shown) == (Status.DELIVERED, "r", ("photo",))


async def test_a_delivery_report_that_comes_first_shows_it_as_well(stack: Stack) -> None:
    gate = Gate()
    courier = FakeCourier(respond=gate, remembers=NEVER)
    await stack.courier(courier)
    key = (await stack.deliver(*people(2), content=ONLY_PHOTO)).key
    await until(lambda: len(courier.attempted) == 2)
    await stack.deliveries.record_report(await report_token(stack, key), Status.READ, "r")
    gate.opened.set()
    found = await outcome(stack, key)
    assert (found.status, found.not_shown) == (Status.READ, ("photo",))


async def test_an_unclear_outcome_shows_it_and_a_retry_forgets_it(stack: Stack) -> None:
    first = await stack.courier(FakeCourier(respond=lambda message: Unknown(), remembers=NEVER))
    key = (await stack.deliver(person(1), content=ONLY_PHOTO)).key
    assert (await outcome(stack, key)).not_shown == ("photo",)
    await stack.stop(first)
    await stack.courier(FakeCourier(shows=EVERY_FEATURE))
    await stack.deliveries.retry(key, TENANT, [Status.UNKNOWN])
    found = await outcome(stack, key)
    assert (found.status, found.not_shown) == (Status.SENT, ())


async def test_a_reference_cannot_pass_for_what_was_not_shown(stack: Stack) -> None:
    await stack.courier(FakeCourier(respond=lambda message: Sent('5\x1f["inline"]')))
    found = await outcome(stack, (await stack.deliver(person(1))).key)
    assert (found.reference, found.not_shown) == ('5 ["inline"]', ())


async def test_the_history_shows_the_content_and_the_stream_of_events_what_was_not_shown(stack: Stack) -> None:
    key = (await stack.deliver(person(1), text="<i>x</i>", content=MENU)).key
    assert same((await stack.history(key)).content, MENU)
    changes = stack.tracker.follow(key, TENANT)
    await stack.courier(FakeCourier())
    shown = [change.outcome.not_shown async for change in changes if change.outcome and change.outcome.status == "sent"]
    assert shown == [("parse_mode", "inline", "reply_to", "photo")]


async def test_a_delivery_without_content_stores_and_claims_nothing_more(stack: Stack) -> None:
    key = (await stack.deliver(person(1))).key
    assert "content" not in (await dump(stack.server.url))[str(key)].value
    (parcel,) = (await stack.claim("echo")).tasks
    assert len(parcel.attachment) == 5
