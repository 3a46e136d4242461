"""The play of `./ada demo scenarios`: people at the sandbox use the bot of examples/school-bot.

A student fills in the form, and the reminder for tomorrow is cancelled. The teacher gets the request and writes to the
group, which gets it in all channels. An administrator makes an invite link, and a person joins by it. The bot speaks.

Every step waits for what the bot shows, and fails if it does not come.
"""

import asyncio
import re
import time
from datetime import datetime
from typing import Any

from cli.client.http_client import HttpClient, JsonObject
from cli.command import CommandFailed
from cli.commands.messages.deliveries import delivery_path
from cli.commands.start.demo_stage import SandboxChat, Stage, has_inbox, sample_contacts
from couriers.telegram_bot import CHANNEL
from examples import SCHOOL_BOT

TEACHER, STUDENT, NEWCOMER = 100_001, 100_002, 100_005
SCHOOL_GROUP = -1001
"""A group in Telegram, with the bot in it."""

GROUP, TEXT = "IVT-21", "No class tomorrow. 😀 <b>{Room 5}</b>"
PEOPLE: tuple[JsonObject, ...] = (
    {"id": 1, "name": "Anna", "role": "trainer", "contacts": {CHANNEL: str(TEACHER)}},
    {"id": 2, "name": "Boris", "contacts": {**sample_contacts(2), CHANNEL: str(STUDENT)}},
    {"id": 3, "name": "Vera", "contacts": sample_contacts(3)},
)
MEMBERS = (2, 3)

REMINDER = "You wanted to join a club"
NO_VOICE = "I have no voice today"
_LINK = re.compile(r"https://\S+[^\s.,]")
_TIMEOUT = 60.0


async def play(stage: Stage) -> JsonObject:
    """Plays everything; returns what a program may check. Raises CommandFailed at the first step that fails."""
    await fill_directory(stage.api)
    student, teacher = stage.chat(STUDENT, "Boris"), stage.chat(TEACHER, "Anna")
    reminder = await fill_in_form(stage, student)
    await read_request(teacher)
    history = await write_to_group(stage, student, teacher)
    joined = await invite(stage, teacher)
    voice = await speak(student)
    return {"bot": str(SCHOOL_BOT), "reminder": reminder, "history": history, "joined": joined, "voice": voice}


async def fill_directory(api: HttpClient) -> None:
    for person in PEOPLE:
        await api.call("POST", "/v1/users", {**person, "locale": "en"})
    await api.call("POST", "/v1/groups", {"id": GROUP, "title": "Group 21", "members": MEMBERS})
    await api.call("PUT", f"/v1/ownerships/1/group/{GROUP}")


async def fill_in_form(stage: Stage, student: SandboxChat) -> JsonObject:
    """Fill in the form, with wrong answers that are asked for again. Return the reminder, which was scheduled and then
    cancelled.
    """
    stage.show("demo", "the menu, and a form of three steps; a wrong answer is asked for again")
    await student.write("/start")
    await student.press("Join a club")
    await student.read("Step 1 of 3")
    reminder = await scheduled_reminder(stage.api)
    stage.show("demo", f"a reminder is scheduled for {time_for_people(reminder['deliver_at'])}")
    for written, answer in (
        ("B", "A name has 2 to 60 letters"),
        ("Boris Petrov", "Step 2 of 3"),
        ("12345", "A number looks like"),
        ("+79990100002", "Step 3 of 3"),
        ("Chess", "Thank you"),
    ):
        await student.write(written)
        await student.read(answer)
    cancelled = await delivery_in_state(stage.api, reminder["id"], "cancelled")
    stage.show("demo", "the form is complete, so the reminder is cancelled")
    return cancelled


async def scheduled_reminder(api: HttpClient) -> JsonObject:
    """Return the reminder. Raises CommandFailed if there is none, or not for tomorrow."""
    scheduled = (await api.call("GET", "/v1/deliveries?state=scheduled"))["deliveries"]
    found = [one for one in scheduled if one["text"].startswith(REMINDER)]
    if len(found) != 1:
        raise CommandFailed(f"{len(found)} reminders are scheduled, not one")
    reminder: JsonObject = found[0]
    return reminder


def time_for_people(moment: str) -> str:
    """Return a moment in UTC, to a minute."""
    return f"{datetime.fromisoformat(moment):%Y-%m-%d %H:%M} UTC"


async def delivery_in_state(api: HttpClient, delivery: str, state: str) -> JsonObject:
    """Return the history when it has this state. Raises CommandFailed if it does not get it in time."""
    deadline = time.monotonic() + _TIMEOUT
    while (history := await api.call("GET", delivery_path(delivery)))["state"] != state:
        if time.monotonic() > deadline:
            raise CommandFailed(f"the delivery {delivery} is {history['state']}, not {state}")
        await asyncio.sleep(0.05)
    return history


async def read_request(teacher: SandboxChat) -> None:
    """Read the notification of the administrator, and the request in the bot."""
    await teacher.read("wants to join the club Chess")
    await teacher.write("/requests")
    await teacher.read("Boris Petrov")


async def write_to_group(stage: Stage, student: SandboxChat, teacher: SandboxChat) -> JsonObject:
    """Write to the group as the teacher, the only one that may; the group gets the exact text in all its channels.
    Return the history.
    """
    stage.show("demo", f"a message to the group {GROUP}, which only the teacher may send")
    await student.write("/write")
    await student.read("Only teachers write to the group")
    await teacher.write("/write")
    await teacher.read("What shall I write")
    await teacher.write(TEXT)
    await teacher.read("Sent to IVT-21. People reached: 2.")
    messages = (await stage.sandbox.call("GET", "/inbox.json"))["messages"]
    received = sorted((one["channel"], one["address"]) for one in messages if one["text"] == TEXT)
    for channel, address in received:
        stage.show(channel, f"{address} got “{TEXT}”")
    contacts = [contact for person in PEOPLE if person["id"] in MEMBERS for contact in person["contacts"].items()]
    expected = sorted((channel, address) for channel, address in contacts if has_inbox(channel))
    if received != expected:
        raise CommandFailed(f"the group got the message at {received}, not at {expected}")
    sent = (await stage.api.call("GET", "/v1/deliveries?sender=1"))["deliveries"]
    return await stage.api.call("GET", delivery_path(sent[0]["id"]))


async def invite(stage: Stage, teacher: SandboxChat) -> bool:
    """Make an invite link as the administrator of a group in Telegram; one person joins by it and is welcomed."""
    stage.show("demo", "an invite link for one person, who joins a group and is welcomed")
    set_up = {"chat": SCHOOL_GROUP, "title": "School", "creator": TEACHER}
    await stage.sandbox.call("POST", f"/group/{CHANNEL}", set_up)
    in_group = stage.chat(TEACHER, "Anna", group=SCHOOL_GROUP)
    await in_group.write("/invite", is_answered=False)
    found = _LINK.search(await teacher.read("One person may join by"))
    if found is None:
        raise CommandFailed("the bot sent no invite link")
    await stage.chat(NEWCOMER, "Leo").write("/start")
    joined = await stage.sandbox.call("POST", f"/join/{CHANNEL}", {"address": NEWCOMER, "link": found[0]})
    await in_group.read("Welcome, ")
    return bool(joined["joined"])


async def speak(student: SandboxChat) -> bool:
    """Return whether the answer is a voice message: a machine without espeak-ng or ffmpeg answers with a text."""
    await student.write("/say Good morning", is_answered=False)
    message: dict[str, Any] = await student.find(
        lambda one: one if one["kind"] == "voice" or NO_VOICE in one["text"] else None, "a voice message"
    )
    return bool(message["kind"] == "voice")
