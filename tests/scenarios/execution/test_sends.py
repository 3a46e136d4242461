"""What a `send` gives to the courier, when, and for which recipients; and what it returns to the chain."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from core.model.content import Attachment, AttachmentType, Button, Content, ParseMode
from core.model.delivery import Quota
from core.model.hours import QuietHours, TenantQuietHours
from core.model.own_fields import FieldType, OwnField
from core.model.people import Group, User
from core.model.states import Reason
from core.orders import SendingPolicy
from couriers.sending.interface import Rejected, Unknown
from tests.scenarios.execution.conftest import PERSON, Installation, states
from tests.support.stack import TENANT, FakeCourier

HTML = ParseMode.HTML
PRESS = {"callback_id": "c", "callback_data": ":s.main", "message_id": 55}


async def sent(installation: Installation, action: str, **event: Any) -> tuple[str, Content | None]:
    """Text and content of the only message that this action sends."""
    installation.actions(f"    - {action}")
    await installation.start()
    await installation.play(**event)
    (message,) = installation.courier.attempted
    return message.text, message.content


@pytest.mark.parametrize(
    ("action", "content"),
    [
        ("{type: send, text: plain}", None),
        ("{type: send, text: <b>bold</b>}", Content(HTML)),
        ("{type: send, text: '*bold*', parse_mode: MarkdownV2}", Content(ParseMode.MARKDOWN_V2)),
    ],
)
async def test_a_text_has_its_parse_mode(installation: Installation, action: str, content: Content | None) -> None:
    assert (await sent(installation, action))[1] == content


async def test_additional_text_is_appended_and_its_placeholders_are_replaced(installation: Installation) -> None:
    action = "{type: send, text: 'Hello, ', additional_text: '{event_text|upper}!'}"
    assert (await sent(installation, action))[0] == "Hello, X!"


INLINE = [[Button("Да", data="da"), Button("Назад", data=":menu")], [Button("Сайт", url="https://a.example")]]


@pytest.mark.parametrize(
    ("keyboard", "content"),
    [
        ('inline: [[Да, {Назад: menu}], [{Сайт: "https://a.example"}]]', Content(HTML, inline=INLINE)),
        ("inline: [[👍]]", Content(HTML, inline=[[Button("👍", data="👍")]])),
        ("reply: [[A, B], [C]]", Content(HTML, reply=[["A", "B"], ["C"]])),
        ("reply: []", Content(HTML, reply=[])),
        ("inline: [[A]], reply: [[B]]", Content(HTML, inline=[[Button("A", data="a")]])),
    ],
)
async def test_a_keyboard_goes_to_the_courier(installation: Installation, keyboard: str, content: Content) -> None:
    found = (await sent(installation, f"{{type: send, text: x, {keyboard}}}"))[1]
    assert found == content


@pytest.mark.parametrize(
    ("options", "event", "content"),
    [
        ("", {"message_id": 55}, None),
        ("", PRESS, Content(HTML, edit="55")),
        (", callback_edit: false", PRESS, None),
        (", message_reply: true", PRESS, Content(HTML, reply_to="55")),
        (", message_reply: true, remove: true", {"message_id": 55}, Content(HTML, reply_to="55")),
        (", remove: true", PRESS, Content(HTML, edit="55")),
        (", remove: true", {"message_id": 55}, Content(HTML, remove="55")),
        (", exact_message_id: 44", {"message_id": 55}, Content(HTML, edit="44")),
        (", remove_message_id: 44", {"message_id": 55}, Content(HTML, remove="44")),
        (", remove: true, remove_message_id: 44", {"message_id": 55}, Content(HTML, remove="44")),
    ],
)
async def test_a_message_edits_answers_or_removes_another_one(
    installation: Installation, options: str, event: dict[str, Any], content: Content | None
) -> None:
    assert (await sent(installation, f"{{type: send, text: x{options}}}", **event))[1] == content


async def test_a_private_answer_goes_to_the_person_and_concerns_no_message_of_the_group(
    installation: Installation,
) -> None:
    installation.write("group_triggers.yaml", 'text: {"*": s.main}')
    group = {"chat_type": "supergroup", "chat_id": "-100", "message_id": 5}
    text = "{type: send, text: x, private_answer: true, message_reply: true}"
    assert await sent(installation, text, **group) == ("x", None)
    assert installation.courier.addresses == ["7"]


async def test_files_below_the_folder_addresses_and_ids_are_attached_and_others_left_out(
    installation: Installation, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("files/a.png", "files/b.pdf", "voice.ogg"):
        installation.write(name, "content")
    (tmp_path / "secret.txt").write_text("secret")
    names = "[files/a.png, {file: files/a.png, type: document}, voice.ogg, ../secret.txt, /etc/passwd, missing.png,"
    _, content = await sent(
        installation,
        f'{{type: send, attachment: {names} "https://a.example/c.mp4?x=1", {{file_id: F1, type: photo}}]}}',
    )
    assert content is not None
    folder = str(installation.folder.resolve())
    assert content.attachments == (
        Attachment(AttachmentType.PHOTO, path=f"{folder}/files/a.png"),
        Attachment(AttachmentType.DOCUMENT, path=f"{folder}/files/a.png"),
        Attachment(AttachmentType.VOICE, path=f"{folder}/voice.ogg"),
        Attachment(AttachmentType.VIDEO, url="https://a.example/c.mp4?x=1"),
        Attachment(AttachmentType.PHOTO, provider_id="F1"),
    )
    warnings = [record.getMessage() for record in caplog.records if record.name == "scenarios.context"]
    assert ["secret.txt" in warnings[0], "passwd" in warnings[1], "missing.png" in warnings[2]] == [True] * 3
    assert all("scenarios/s.yaml, line 3" in warning for warning in warnings)


async def test_a_file_of_two_gigabytes_is_left_out_and_the_text_is_sent(installation: Installation) -> None:
    with (installation.folder / "huge.bin").open("wb") as file:
        file.truncate(2_000_000_000)  # sparse: it takes no space
    assert await sent(installation, "{type: send, text: x, attachment: huge.bin}") == ("x", None)


async def test_a_caption_is_shorter_than_a_text(installation: Installation) -> None:
    installation.write("a.png", "content")
    text, _ = await sent(installation, "{type: send, text: '{event_text}', attachment: a.png}", text="x" * 2000)
    assert text == "x" * 1021 + "..."


async def test_nothing_to_send_and_a_refused_message_fail_with_an_error(installation: Installation) -> None:
    installation.actions("""
    - {type: send}
    - {type: send, text: "{error}", chain: failed}
    - {type: send, text: "{error}", chain: failed}
""")
    replies = iter([Rejected(Reason.BLOCKED, "blocked")])
    respond = installation.courier.respond
    installation.courier.respond = lambda message: next(replies, None) or respond(message)
    await installation.start()
    run = await installation.play()
    assert states(run) == ["failed", "failed", "completed"]
    assert run.actions[1].error == "the message was not sent: the recipient has blocked the sender"
    assert installation.texts == [
        "отправлять нечего: нет ни текста, ни вложения",
        "сообщение не отправлено: получатель заблокировал отправителя",
    ]


async def test_an_author_chooses_what_follows_a_message_of_which_nobody_knows_whether_it_arrived(
    installation: Installation,
) -> None:
    """The step after it was dropped, and no chain could name what had happened."""
    installation.actions("""
    - {type: send, text: first}
    - {type: send, text: "not known to have arrived", chain: completed}
    - {type: send, text: lost}
    - {type: send, text: "{error}", chain: [completed, unknown]}
""")
    respond, installation.courier.remembers = installation.courier.respond, timedelta(0)
    installation.courier.respond = lambda message: (
        Unknown(Reason.CRASHED) if message.text in ("first", "lost") else respond(message)
    )
    await installation.start()
    run = await installation.play()
    assert states(run) == ["unknown", "drop", "unknown", "completed"]
    assert installation.texts[-1] == "неизвестно, отправлено ли сообщение"


async def test_a_message_returns_its_id_and_its_delivery(installation: Installation) -> None:
    installation.actions("    - {type: send, text: x}")
    await installation.start()
    results = (await installation.play()).actions[0].results
    assert results["last_message_id"] == 101
    assert (results["verdict"], results["reached"]) == ("all_reached", 1)


# broadcasts


async def university(installation: Installation) -> None:
    """A group of two people; the writer is a trainer who owns it."""
    directory = installation.directory
    for number in (1, 2):
        await directory.users.create(TENANT, User(number, contacts={"echo": [f"p{number}"]}))
    await directory.users.create(TENANT, User(42, role="trainer", contacts={"echo": ["7"]}))
    await directory.groups.create(TENANT, Group("A"), [1, 2])
    await directory.ownerships.own(TENANT, 42, "group", "A")


BROADCAST = """
    - {type: send, text: "to all", to: {group: A}, channels: echo}
    - {type: send, text: "{verdict} {reached} {error|fallback:-}", chain: any}
"""


async def test_a_broadcast_returns_its_verdict(installation: Installation) -> None:
    await university(installation)
    installation.actions(BROADCAST)
    await installation.start()
    await installation.play()
    assert sorted(installation.courier.addresses) == ["7", "p1", "p2"]
    assert installation.texts[-1] == "all_reached 2 -"


async def test_a_broadcast_reaches_the_people_who_fulfil_a_condition_once_each_and_is_reported(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scenarios.sending.addressees.IN_DELIVERY", 2)  # 4 people, in two deliveries
    installation.write("variables.yaml", "person: {slot: text}")
    installation.actions("""
    - {type: set, variables: {person.slot: "{event_text}"}}
all:
  actions:
    - {type: send, text: "No water", to: {people: true, when: {person.slot: {rule: not_empty}}}}
    - {type: send, text: "{verdict} {reached} of {people}", chain: true}
""")
    installation.write("triggers.yaml", 'text: {exact: {all: s.all}, "*": s.main}')
    users = installation.directory.users
    await users.create(TENANT, User(1, "Anna", contacts={"echo": ["11", "12"]}))
    await users.create(TENANT, User(2, opt_out=["echo"], contacts={"echo": ["13"]}))
    await installation.start()
    for person in ("11", "12", "13", "14", "15"):
        await installation.play("9:00", user_id=person, chat_id=person)
    await installation.play("all")
    assert sorted(installation.courier.addresses) == ["11", "12", "14", "15", "7"]  # Anna has two chats, 13 opted out
    assert installation.texts[-1] == "all_reached 3 of 4"


async def test_a_broadcast_to_nobody_fails(installation: Installation) -> None:
    installation.write("variables.yaml", "person: {slot: text}")
    to = "{people: true, when: {person.slot: {rule: not_empty}}}"
    installation.actions(
        f"    - {{type: send, text: x, to: {to}}}\n    - {{type: send, text: '{{code}}', chain: failed}}"
    )
    await installation.start()
    await installation.play()
    assert ["NOBODY_ADDRESSED" in text for text in installation.texts] == [True]


@pytest.mark.parametrize(("channels", "sent"), [("", 1), (", channels: [echo]", 1), (", channels: all", 2)])
async def test_one_message_to_a_person_goes_to_the_first_channel_that_works(
    installation: Installation, channels: str, sent: int
) -> None:
    other = FakeCourier(channel="other")
    await installation.stack.courier(other)
    user = User(1, contacts={"echo": ["7"], "other": ["o"]})
    await installation.directory.users.create(TENANT, user)
    installation.actions(f"    - {{type: send, text: x, to: person{channels}}}")
    await installation.start()
    await installation.play()
    assert len(installation.texts) + len(other.attempted) == sent


@pytest.mark.parametrize(
    ("to", "text", "texts"),
    [
        ("[{id: 1}, {id: 2}], personal: true", "{{name}}", ["Anna", "Boris"]),
        ("[{id: 1}, {id: 2}]", "{{name}}", ["{{name}}", "{{name}}"]),
        ("[{id: 1, values: {Mark: 5}}, {id: 2, values: {Mark: '{x|fallback:4}'}}]", "{{mark}}", ["4", "5"]),
    ],
)
async def test_a_broadcast_is_filled_for_each_recipient_if_it_is_personal(
    installation: Installation, to: str, text: str, texts: list[str]
) -> None:
    for number, name in ((1, "Anna"), (2, "Boris")):
        user = User(number, name, contacts={"echo": [f"p{number}"]})
        await installation.directory.users.create(TENANT, user)
    text = text.replace("{", r"\{").replace("}", r"\}")
    installation.actions(f"    - {{type: send, text: '{text}', channels: echo, to: {to}}}")
    await installation.start()
    await installation.play()
    assert sorted(installation.texts) == texts


async def test_a_broadcast_counts_towards_the_quota_of_the_person_and_its_replies_do_not(
    installation: Installation,
) -> None:
    await university(installation)
    installation.rules = SendingPolicy({"trainer": Quota(1, timedelta(days=1))})
    installation.actions(BROADCAST)
    await installation.start()
    await installation.play()
    assert states(await installation.play()) == ["failed", "completed"]
    assert "Квота исчерпана." in installation.texts[-1]


async def test_a_broadcast_in_quiet_hours_is_stored_for_the_morning_and_a_reply_is_sent(
    installation: Installation,
) -> None:
    await university(installation)
    now = datetime.now(UTC)
    quiet = QuietHours((now - timedelta(hours=1)).time(), (now + timedelta(hours=1)).time())
    installation.rules = SendingPolicy(quiet_hours=TenantQuietHours(quiet))
    installation.actions(BROADCAST)
    await installation.start()
    await installation.play()
    assert installation.texts == ["scheduled 0 -"]


@pytest.mark.parametrize(
    ("to", "code"),
    [
        ("{group: B}", "GROUP_NOT_FOUND"),
        ("{nobody: 1}", "RECIPIENT_MALFORMED"),
        ("[1, [2, {nobody: 1}]]", "RECIPIENT_MALFORMED"),
        ("[[]]", "NOBODY_ADDRESSED"),
        ("99", "USER_NOT_FOUND"),
        ("{id: 1, contacts: {sms: 7}}", "ADDRESS_MALFORMED"),
    ],
)
async def test_a_broadcast_to_an_unknown_addressee_fails(installation: Installation, to: str, code: str) -> None:
    installation.actions(f"    - {{type: send, text: x, to: {to}}}")
    await installation.start()
    assert code in (await installation.play()).actions[0].error


async def test_a_reminder_is_stored_its_chain_goes_on_and_cancel_withdraws_only_this_persons(
    installation: Installation,
) -> None:
    installation.write("triggers.yaml", 'text: {exact: {"done": s.done}, "*": s.main}')
    installation.write(
        "scenarios/s.yaml",
        """
main:
  actions:
    - {type: send, text: "remember", delay: 1d, tag: form}
    - {type: send, text: "until tomorrow", chain: completed}
done:
  actions:
    - {type: cancel, tag: form}
    - {type: send, text: "{cancelled}", chain: completed}
""",
    )
    await installation.start()
    run = await installation.play()
    assert run.actions[0].results["verdict"] == "scheduled"
    await installation.play(user_id="8", chat_id="8")
    await installation.play("done")
    await installation.play("done")
    assert installation.texts == ["until tomorrow", "until tomorrow", "1", "0"]
    open_deliveries, _ = await installation.stack.deliveries.list(TENANT, state=None)
    scheduled = [one for one in open_deliveries if str(one.state) == "scheduled"]
    assert len(scheduled) == 1
    assert timedelta(hours=23) < scheduled[0].deliver_at - datetime.now(UTC) < timedelta(hours=25)


async def test_a_bot_may_have_a_zone_of_its_own(installation: Installation) -> None:
    installation.write("bot.yaml", "timezone: Asia/Tokyo")
    installation.actions("    - {type: send, text: later, deliver_at: '2037-03-29T12:00', far: true}")
    await installation.start()
    await installation.play()
    (stored,), _ = await installation.stack.deliveries.list(TENANT)
    assert stored.deliver_at == datetime(2037, 3, 29, 3, tzinfo=UTC)


async def test_a_person_is_put_into_a_group_of_the_directory_and_taken_out(installation: Installation) -> None:
    directory = installation.directory
    await directory.users.create(TENANT, User(1, "Anna", contacts={"echo": ["11"]}))
    await directory.groups.create(TENANT, Group("A"))
    installation.actions("""
    - {type: group, add: A}
    - {type: group, add: B}
    - {type: send, text: "{code}", chain: failed}
back: {actions: [{type: group, remove: A}]}
""")
    installation.write("triggers.yaml", 'text: {exact: {back: s.back}, "*": s.main}')
    await installation.start()
    for person in ("11", "12", "12"):
        await installation.play(user_id=person, chat_id=person, first_name="Boris")
    found = await directory.groups.all_members(TENANT, "A")
    assert [(one.id, one.name) for one in found] == [(1, "Anna"), ("echo-12", "Boris")]
    assert installation.texts == ["GROUP_NOT_FOUND"] * 3
    for person in ("11", "13"):
        assert states(await installation.play("back", user_id=person, chat_id=person)) == ["completed"]
    assert await directory.groups.member_ids(TENANT, "A") == ["echo-12"]


async def test_a_time_that_the_clock_skips_is_the_next_minute_with_a_warning_to_the_author(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    installation.timezone = ZoneInfo("Europe/Berlin")
    installation.actions("    - {type: send, text: later, deliver_at: '2037-03-29T02:30', far: true}")
    await installation.start()
    await installation.play()
    (stored,), _ = await installation.stack.deliveries.list(TENANT)
    assert stored.deliver_at == datetime(2037, 3, 29, 1, tzinfo=UTC)
    assert "the clock is put forward over 29.03.2037 02:30" in caplog.text


@pytest.mark.parametrize(
    ("when", "code"),
    [
        ("deliver_at: '2020-01-01T10:00'", "DELIVER_AT_PAST"),
        ("deliver_at: '2020-01-01T10:00', to: {id: 1}", "DELIVER_AT_PAST"),
        ("delay: 400d", "DELIVER_AT_FAR"),
    ],
)
async def test_a_time_that_is_probably_a_mistake_fails(installation: Installation, when: str, code: str) -> None:
    installation.actions(f"    - {{type: send, text: x, {when}}}")
    await installation.start()
    assert code in (await installation.play()).actions[0].error


@pytest.mark.parametrize("when", ["delay: soon", "deliver_at: someday"])
async def test_a_time_that_is_none_fails(installation: Installation, when: str) -> None:
    installation.actions(f"    - {{type: send, text: x, {when}}}")
    await installation.start()
    assert "MALFORMED" in (await installation.play()).actions[0].error


async def test_own_fields_of_the_person_are_placeholders_with_their_types(installation: Installation) -> None:
    directory = installation.directory
    await directory.own_fields.define(TENANT, OwnField("оценка", FieldType.NUMBER))
    own = {"оценка": "4,50", "номер группы": "12"}
    await directory.users.create(TENANT, User(1, contacts={"echo": [PERSON]}, fields=own))
    text = "{directory_fields.оценка|*2} {directory_fields.номер группы} {directory_fields.курс|fallback:-}"
    assert (await sent(installation, f"{{type: send, text: '{text}'}}"))[0] == "9 12 -"
