"""What teachers do in the Telegram bot and by SMS, while processes are killed."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from tests.system.end_to_end.campus import API, BOT, SCENARIOS, Campus
from tests.system.end_to_end.chat import Chat, Phone, mailed_code
from tests.system.end_to_end.university import (
    NIGHT_TEACHER,
    SMS_TEACHER,
    TEACHER,
    TEACHERS,
    University,
    contacts,
    email,
    name,
    reachable,
    telegram_id,
    title,
)

QUOTA = 4
"""Messages of a trainer in a day."""

TEXT = "Занятие переносится в аудиторию 42"
_MOMENT = re.compile(r"\d\d\.\d\d\.\d{4} \d\d:\d\d")
_SPREAD = timedelta(minutes=6)


async def linked_chat(campus: Campus, teacher: int) -> Chat:
    """Links the Telegram chat of a teacher by a mailed code; the bot is killed in between."""
    chat = Chat(campus.sandbox, telegram_id(teacher))
    chat.write("/start")
    await chat.reads("e-mail address")
    chat.write(email(teacher))
    await chat.reads("mailed a code", email(teacher))
    await campus.kill_and_start(BOT, SCENARIOS)
    chat.write(await mailed_code(campus.sandbox, email(teacher)))
    await chat.reads("connected with you", TEACHERS[teacher], "/select")
    # The bot may be killed when its answer is out and the update is not yet confirmed: then the answer comes again.
    assert chat.count("mailed a code") <= 2
    return chat


async def select(chat: Chat, groups: Sequence[str], people: int) -> None:
    """Selects groups; the bot shows how many people are in them."""
    chat.write("/select")
    for group in groups:
        await chat.press(title(group))
    await chat.press("Done")
    await chat.reads(f"People: {people}", "Write the text")


async def write(chat: Chat, text: str) -> None:
    """Writes the text and sends it now."""
    chat.write(text)
    await chat.press("Now")
    await chat.press("Send")


async def teach_by_telegram(campus: Campus, university: University) -> None:
    """Two overlapping groups. Everything is killed before the message is confirmed, and the bot while it is sent."""
    chat, groups = await linked_chat(campus, TEACHER), university.groups[:2]
    people = university.members(*groups)
    missed = people - reachable(people)
    await select(chat, groups, len(people))
    await campus.kill_and_start(BOT, SCENARIOS)
    chat.write(TEXT)
    await chat.press("Now")
    await chat.reads(f"People: {len(people)}, of these without a contact: {len(missed)}", TEXT)
    await campus.kill_and_start_everything()
    await chat.press("Send")
    await chat.reads(f"People: {len(people)}, reached: ")
    await campus.kill_and_start(BOT, SCENARIOS)
    await chat.reads("Everybody who can be reached was reached", f"reached: {len(people) - len(missed)}")
    await chat.press("Who was not reached")
    await chat.reads(f"Not reached: {len(missed)}", *(f"{name(one)} – has no contact" for one in missed))
    assert_each_once(campus, TEXT, people)
    await use_up_the_quota(campus, chat, groups, len(people))


async def use_up_the_quota(campus: Campus, chat: Chat, groups: Sequence[str], people: int) -> None:
    """After four messages the fifth is refused before it is confirmed, with the time that remains."""
    for number in range(2, QUOTA + 1):
        await select(chat, groups, people)
        await write(chat, f"Сообщение {number}")
        await chat.reads("Everybody who can be reached was reached")
    await select(chat, groups, people)
    chat.write("Пятое сообщение")
    await chat.press("Now")
    refused = await chat.reads("as many messages as you may", "possible in ")
    assert re.search("possible in (1 d|23 h)", refused)
    assert not campus.copies("Пятое сообщение")


def assert_each_once(campus: Campus, text: str, people: set[int]) -> None:
    """Each contact of these people has received the text exactly once."""
    expected = {address for one in people for address in contacts(one).items()}
    assert campus.copies(text) == dict.fromkeys(expected, 1)


# by SMS


async def linked_phone(campus: Campus) -> Phone:
    """Links the telephone of a teacher by a mailed code; the bot is killed in between."""
    phone = Phone(campus.sandbox, "+79995550002", campus.inbound_sms)
    await phone.write(email(SMS_TEACHER))
    await phone.reads("Код отправлен", email(SMS_TEACHER))
    await campus.kill_and_start(SCENARIOS)
    await phone.write(await mailed_code(campus.sandbox, email(SMS_TEACHER)))
    await phone.reads(TEACHERS[SMS_TEACHER])
    return phone


async def teach_by_sms(campus: Campus, university: University) -> Phone:
    """All messages of a day but one; the API and the bot are killed after each, before its result has come."""
    phone, group = await linked_phone(campus), university.groups[2]
    people = university.members(group)
    for number in range(1, QUOTA):
        text = f"Лекция {number} отменена"
        await phone.write(f"{group} {text}")
        await phone.reads(title(group), f"получателей: {len(people)}")
        await campus.kill_and_start(SCENARIOS, API)
        await phone.reads(f"Итог. {title(group)}: получили", f"{len(reachable(people))} из {len(people)}")
        assert campus.copies(text).total() >= len(reachable(people))
    return phone


# at night


async def fall_asleep(campus: Campus) -> datetime:
    """From now on these are quiet hours. Returns when they end."""
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    morning = now + timedelta(hours=2)
    campus.settings["ADA_QUIET_HOURS"] = f"{now - timedelta(hours=1):%H:%M}-{morning:%H:%M}"
    await campus.kill_and_start(API, SCENARIOS)
    return morning


def assert_announces(text: str, morning: datetime) -> None:
    """The text names a moment just after the quiet hours."""
    (found,) = _MOMENT.findall(text)
    assert timedelta(0) <= datetime.strptime(found, "%d.%m.%Y %H:%M").replace(tzinfo=UTC) - morning < _SPREAD


async def write_at_night(campus: Campus, university: University, phone: Phone) -> None:
    """The morning is announced in the chat and by SMS; the SMS teacher's fifth message is refused."""
    morning, group = await fall_asleep(campus), university.groups[2]
    chat, people = await linked_chat(campus, NIGHT_TEACHER), university.members(group)
    await select(chat, [group], len(people))
    await write(chat, "Доброе утро")
    assert_announces(await chat.reads("Will be sent on", "quiet hours"), morning)
    await phone.write(f"{group} Доброе утро")
    assert_announces(await phone.reads("тихие часы", f"получателей: {len(people)}"), morning)
    await phone.write(f"{group} Пятое сообщение")
    refused = await phone.reads("столько сообщений, сколько разрешено", "через ")
    assert re.search("через (1 дн|23 ч)", refused)
    assert not campus.copies("Доброе утро")
