"""The play of `./ada demo`: one message to several people over every channel; then a teacher writes from a chat.

It is played in Russian or English. Both messages have characters that a channel may spoil.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import yaml

from cli.client.format_history import align, reachable
from cli.client.http_client import HttpClient, JsonObject
from cli.command import CommandFailed
from cli.commands.messages.deliveries import delivery_path
from cli.commands.start.demo_stage import SandboxChat, Stage, has_inbox, mailed_code, sample_channels, sample_contacts
from core.model.contacts.addresses import channel_title
from couriers.email.channel import CHANNEL as MAIL
from couriers.vk.channel import CHANNEL as VK
from scenarios.bot import new_bot
from scenarios.words import in_language, sentence


@dataclass(frozen=True)
class Story:
    """The names and sentences of one language. Those with {placeholders}: `sent`, `chat`, `replies`, `asks`,
    `confirmed` and `reached`.
    """

    text: str
    people: tuple[str, ...]
    teacher: str
    group: str
    chat_text: str
    sent: str
    chat: str
    replies: str
    question: str
    answer: str
    asks: str
    notice: str
    confirmed: str
    reached: str


STORIES = {
    "en": Story(
        text='No class today: “Networks”, room 42 {"instead": [1, 2]} 🙂',
        people=("Anna", "Boris", "Vera", "Gleb", "Daria"),
        teacher="Ivanov",
        group="IVT-21",
        chat_text="We meet tomorrow at 9:00",
        sent="sent to {people} people: {text}",
        chat="the teacher {teacher} writes to the group {group} from a chat with the bot",
        replies="{student} replies in VK, {teacher} answers in Telegram; neither sees the other's address",
        question="In which room?",
        answer="In room 12.",
        asks="{teacher} asks for a confirmation, {student} presses the button",
        notice="The exam is in room 12",
        confirmed="{student} pressed “{button}”: answered {answered}, open {open}",
        reached="{text}\nreached {reached} of {people} people",
    ),
    "ru": Story(
        text='Моей пары сегодня не будет: «Сети», ауд. 42 {"замена": [1, 2]} 🙂',
        people=("Анна", "Боря", "Вера", "Глеб", "Даша"),
        teacher="Иванов",
        group="ИВТ-21",
        chat_text="Завтра собираемся в 9:00",
        sent="отправлено людям ({people}): {text}",
        chat="преподаватель {teacher} пишет группе {group} из чата с ботом",
        replies="{student} отвечает во ВКонтакте, {teacher} – в Telegram; адреса друг друга они не видят",
        question="В какой аудитории?",
        answer="В аудитории 12.",
        asks="{teacher} просит подтверждения, {student} нажимает кнопку",
        notice="Экзамен в аудитории 12",
        confirmed="{student}, кнопка «{button}»: ответили {answered}, не ответили {open}",
        reached="{text}\nполучили {reached} из {people}",
    ),
}

ENDS = {
    "en": "each person got the exact text once on every channel",
    "ru": "каждый получил точный текст один раз в каждом канале",
}

SETTINGS = {"ADA_SMS_PROFILE": "smsaero"}
"""SMS goes to a provider with an HTTP interface, which most people have."""

PEOPLE = (1, 2, 3, 4, 5)
"""The ids of the people of the story."""

MEMBERS = (1, 2, 3)
"""The ids of those in the group."""

STUDENT = 3
"""The id of who replies; VK is its only channel."""

TEACHER, EMAIL, ADDRESS = 42, "ivanov@example.org", 100_042
"""The teacher's id, the address for the code, and that in the chat with the bot."""


async def play(stage: Stage) -> JsonObject:
    """Plays everything; returns what a program may check. Raises CommandFailed if a recipient did not get the exact
    text once in each channel.
    """
    story = STORIES[stage.language]
    await fill_directory(stage.api, story, stage.language)
    history = await send_to_people(stage, story)
    received = await inbox(stage.sandbox)
    check("the first message", history, received, story.text, PEOPLE)
    chat = stage.chat(ADDRESS, story.teacher)
    from_chat = await write_from_chat(stage, story, chat)
    from_chat_received = [
        message for message in await inbox(stage.sandbox) if without_footer(message["text"]) == story.chat_text
    ]
    check("the teacher's message", from_chat, from_chat_received, story.chat_text, MEMBERS)
    await reply_over_two_channels(stage, story, chat)
    await confirm_by_a_press(stage, story)
    return {"history": history, "received": received, "chat": from_chat, "language": stage.language}


async def send_to_people(stage: Stage, story: Story) -> JsonObject:
    """Send to people with their contacts; show the outcomes as they come; return the history."""
    people = [
        {"id": number, "name": name, "contacts": sample_contacts(number)}
        for number, name in zip(PEOPLE, story.people, strict=True)
    ]
    body = {"sender": teacher(story), "text": story.text, "recipients": people, "origin": "demo"}
    accepted = await stage.api.call("POST", "/v1/deliveries", {**body, "channels": list(sample_channels())})
    stage.show("demo", story.sent.format(people=len(people), text=story.text))
    async for event in stage.api.events(f"{delivery_path(accepted['id'])}/events"):
        if event.name == "outcome":
            name, channel = story.people[event.data["recipient"] - 1], event.data["channel"]
            stage.show(channel, f"{name}: {status(event.data['outcome'], stage.language)}")
    return await stage.api.call("GET", delivery_path(accepted["id"]))


async def write_from_chat(stage: Stage, story: Story, chat: SandboxChat) -> JsonObject:
    """Link the teacher's chat with the bot, and write from it to a group; return the history."""
    stage.show("demo", story.chat.format(teacher=story.teacher, group=story.group))
    await chat.write("/start")
    await chat.write(EMAIL)
    await chat.write(await mailed_code(stage.sandbox, EMAIL))
    await chat.write("/select")
    await chat.press(story.group)
    await chat.press(label("choose_done", stage.language))
    await chat.write(story.chat_text)
    await chat.press(label("button_now", stage.language))
    await chat.press(label("button_send", stage.language))
    await chat.read(f"{channel_title(MAIL.name, stage.language)}: {label('count_sent', stage.language)} 1")
    newest = (await stage.api.call("GET", f"/v1/deliveries?sender={TEACHER}"))["deliveries"][0]
    return await stage.api.call("GET", delivery_path(newest["id"]))


async def reply_over_two_channels(stage: Stage, story: Story, chat: SandboxChat) -> None:
    """Let a person ask in VK what the teacher answers in Telegram. Raises CommandFailed unless each reads the other's
    words and no address.
    """
    student, address = story.people[STUDENT - 1], sample_contacts(STUDENT)[VK.name]
    stage.show("demo", story.replies.format(student=student, teacher=story.teacher))
    stage.show(student, story.question)
    await stage.sandbox.call("POST", f"/write/{VK.name}", {"address": int(address), "text": story.question})
    relayed = await chat.find(lambda one: one if story.question in one["text"] else None, f"{story.question!r}")
    await chat.write(story.answer, is_answered=False, reply_to=relayed["id"])
    query = {"channel": VK.name, "address": address, "text": story.answer, "wait": "20"}
    found = (await stage.sandbox.call("GET", "/inbox.json", query=query))["messages"]
    if not found or address in relayed["text"] or str(ADDRESS) in found[-1]["text"]:
        raise CommandFailed(f"the answer did not reach {student}, or has an address: {found}")
    for line in found[-1]["text"].splitlines():
        stage.show(VK.name, line)


async def confirm_by_a_press(stage: Stage, story: Story) -> None:
    """Ask the person who replies for a confirmation, press its button in VK, and show that it counts."""
    student, address = story.people[STUDENT - 1], sample_contacts(STUDENT)[VK.name]
    stage.show("demo", story.asks.format(teacher=story.teacher, student=student))
    to = {"id": STUDENT, "name": student, "contacts": {VK.name: [address]}}
    body = {"sender": teacher(story), "text": story.notice, "recipients": [to], "answer": {"kind": "confirm"}}
    accepted = await stage.api.call("POST", "/v1/deliveries", {**body, "origin": "demo"})
    query = {"channel": VK.name, "address": address, "text": story.notice, "wait": "20"}
    await stage.sandbox.call("GET", "/inbox.json", query=query)
    newest = (await stage.sandbox.call("GET", f"/chat/{VK.name}", query={"address": address}))["messages"][-1]
    button = label("confirmation", stage.language)
    press = {"address": int(address), "message": newest["number"], "button": button}
    await stage.sandbox.call("POST", f"/press/{VK.name}", press)
    async for event in stage.api.events(f"{delivery_path(accepted['id'])}/events?answers=yes"):
        if event.name == "answer":
            break
    totals = (await stage.api.call("GET", delivery_path(accepted["id"])))["answers"]
    stage.show(VK.name, story.confirmed.format(student=student, button=button, **totals))


async def fill_directory(api: HttpClient, story: Story, language: str) -> None:
    """Create the people, a group, and the teacher who may write to it."""
    for number, name in zip(PEOPLE, story.people, strict=True):
        await api.call(
            "POST", "/v1/users", {"id": number, "name": name, "contacts": sample_contacts(number), "locale": language}
        )
    await api.call("POST", "/v1/users", {**teacher(story), "email": EMAIL, "locale": language})
    await api.call("POST", "/v1/groups", {"id": story.group, "title": story.group, "members": MEMBERS})
    await api.call("PUT", f"/v1/ownerships/{TEACHER}/group/{quote(story.group)}")


def teacher(story: Story) -> dict[str, Any]:
    return {"id": TEACHER, "name": story.teacher, "role": "trainer"}


def label(name: str, language: str) -> str:
    """Return what the bot writes on a button, or in a message."""
    texts: Mapping[str, str] = yaml.safe_load(
        (new_bot.TEACHER / "texts" / f"{language}.yaml").read_text(encoding="utf-8")
    )
    return texts[name] if name in texts else in_language(sentence(name), language)


def status(outcome: Mapping[str, Any], language: str) -> str:
    return label(f"count_{outcome['status']}", language)


# the check


async def inbox(sandbox: HttpClient) -> list[JsonObject]:
    messages: list[JsonObject] = (await sandbox.call("GET", "/inbox.json"))["messages"]
    return messages


def check(what: str, history: JsonObject, received: list[JsonObject], text: str, people: tuple[int, ...]) -> None:
    """Check who got what. Raises CommandFailed unless these people, and no others, got the exact text once on each of
    their channels. For a channel that the sandbox does not simulate only the history says so.
    """
    contacts = [contact for person in people for contact in sample_contacts(person).items()]
    expected = sorted((channel, address, text) for channel, address in contacts if has_inbox(channel))
    arrived = sorted((one["channel"], one["address"], without_footer(one["text"])) for one in received)
    if history["state"] != "finished" or history["verdict"] != "all_reached" or arrived != expected:
        raise CommandFailed(f"{what} did not reach each recipient once on every channel: arrived {arrived}")


def without_footer(text: str) -> str:
    """Return a text without the link to the recipient's own page, which ends a mail."""
    return text.partition("\n\n-- \n")[0]


# the table


def text_of(result: JsonObject) -> str:
    """Return a table for each message: a line for each person, a column for each channel; the columns are aligned."""
    language = result["language"]
    histories = [result["history"], result["chat"]]
    table = list(align([["", *sample_channels()], *(row for history in histories for row in rows(history, language))]))
    lines, rest = [], table[1:]
    for history in histories:
        people = len(history["recipients"])
        counts = {"text": history["text"], "reached": history["counts"]["reached"], "people": people}
        lines += ["", STORIES[language].reached.format(**counts), table[0], *rest[:people]]
        rest = rest[people:]
    return "\n".join([*lines, ""])


def rows(history: JsonObject, language: str) -> list[list[str]]:
    found = [(recipient["name"], reachable(recipient)) for recipient in history["recipients"]]
    return [
        [
            name,
            *(status(outcomes[channel], language) if channel in outcomes else "–" for channel in sample_channels()),
        ]
        for name, outcomes in found
    ]
