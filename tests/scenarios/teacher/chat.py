"""A teacher's chat with the bot: a Bot API server and a real Valkey; SMS is simulated. A process receives, another one
runs the dialog of teachers, a courier sends its replies.

The group "ИВТ-101" has three students: Боря and Вера can be reached by SMS, Глеб has no contact.
"""

import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from msgspec import structs

from core.directory import Directory
from core.directory.linking import Linking
from core.model.clock import Backoff
from core.model.delivery import Quota
from core.model.hours import TenantQuietHours
from core.model.people import Group, Supergroup, User
from core.orders import Sending, SendingPolicy
from core.sentence import say
from core.services import Services
from couriers.email import LinkCodeMailer
from couriers.sending.services import CourierOptions
from couriers.telegram_bot import courier as telegram_bot
from scenarios.bot.new_bot import TEACHER as FOLDER
from scenarios.execution.opening import ScenarioOptions
from scenarios.words import in_language, sentence
from tests.sandbox.bot_api_clients import BotApi
from tests.support.outbox import Outbox
from tests.support.receiving import answering, receiving_bot, running
from tests.support.stack import FLOOR, TENANT, FakeCourier, Stack
from tests.support.waiting import until

TEACHER, STUDENT, STRANGER = 100_001, 100_002, 100_003
ANNA = User(1, "Анна", "anna@example.org", "trainer", "en", {"telegram-bot": [str(TEACHER)]})
BORIS = User(2, "Боря", "boris@example.org", "student", "en", {"telegram-bot": [str(STUDENT)], "sms": ["+79990000002"]})
VERA = User(3, "Вера", None, "student", "ru", {"sms": ["+79990000003"]})
GLEB = User(4, "Глеб", None, "student", "ru")
Json = dict[str, Any]


PATIENT = CourierOptions(max_sleep=FLOOR, backoff=Backoff(timedelta(milliseconds=20), timedelta(milliseconds=200), 20))
"""Tries again often, as an installation does, and soon."""


@dataclass
class School:
    """The bot and the people around it. `sms`: the students' channel."""

    stack: Stack
    bot_api: BotApi
    outbox: Outbox
    sms: FakeCourier
    core: Services
    linking: Linking
    timezone: tzinfo = UTC

    @property
    def directory(self) -> Directory:
        return self.core.directory

    # what a person does

    def write(self, written: str, user: int = TEACHER) -> None:
        self.bot_api.server.people.write(user, written)

    def press(self, label: str, user: int = TEACHER, message: Json | None = None) -> str:
        """Press a button of a message, by default the last one that has it; return the id of the press."""
        shown = message or self.last_with(label, user)
        return self.bot_api.server.people.press(user, int(shown["message_id"]), label)

    # what a person sees

    def messages(self, user: int = TEACHER) -> list[Json]:
        """The messages of the bot, oldest first."""
        return [one for one in self.bot_api.server.people.messages(user) if one["from"]["id"] != user]

    def texts(self, user: int = TEACHER) -> list[str]:
        return [one["text"] for one in self.messages(user)]

    def last_with(self, label: str, user: int = TEACHER) -> Json:
        """The last message with this button."""
        return next(one for one in reversed(self.messages(user)) if label in labels(one))

    async def answer(self, written: str, user: int = TEACHER) -> str:
        """Write, and return the next message of the bot."""
        before = len(self.messages(user))
        self.write(written, user)
        await until(lambda: len(self.messages(user)) > before)
        return self.texts(user)[before]

    async def notice(self, label: str, user: int = TEACHER, message: Json | None = None) -> str:
        """Press a button, and return the text that is shown over the chat."""
        return await self.notice_of(self.press(label, user, message))

    async def notice_of(self, query: str) -> str:
        people = self.bot_api.server.people
        await until(lambda: people.answer(query) is not None)
        return str((people.answer(query) or {}).get("text") or "")

    async def shows(self, wanted: str, user: int = TEACHER, within: float = 60.0) -> Json:
        """Wait until a message contains this text; return it."""
        await until(lambda: any(wanted in one for one in self.texts(user)), within=within)
        return next(one for one in reversed(self.messages(user)) if wanted in one["text"])

    async def shows_button(self, label: str, user: int = TEACHER) -> Json:
        """Wait until the last message has this button, perhaps an edit after its text; return it."""
        await until(lambda: label in labels(self.messages(user)[-1]))
        return self.messages(user)[-1]

    # the dialog

    async def select(self, *titles: str) -> None:
        """Begin a dialog and toggle these groups on."""
        await self.answer("/select")
        for title in titles:
            await self._toggle_on(title)

    async def _toggle_on(self, title: str) -> None:
        await self.notice(title)
        await until(lambda: f"✅ {title}" in labels(self.messages()[-1]))

    async def prepare(self, written: str, *titles: str) -> None:
        """Go up to the confirmation."""
        await self.select(*(titles or ("ИВТ-101",)))
        await self.notice("Done")
        await self.answer(written)
        await self.notice("Now")
        await until(lambda: "Send" in labels(self.messages()[-1]))

    async def send(self, written: str, *titles: str) -> None:
        """The whole dialog."""
        await self.prepare(written, *titles)
        await self.notice("Send")

    @property
    def options(self) -> ScenarioOptions:
        return ScenarioOptions(TENANT, self.timezone, linking=self.linking, public_url="https://ada.example/")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The processes of the bot."""
        server = self.bot_api.server
        bot = receiving_bot(server.token, server.url, self.core)
        async with answering(self.core, self.options), running(bot):
            yield


def labels(message: Json) -> list[str]:
    """The labels of the buttons of a message."""
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    return [button["text"] for row in rows for button in row]


@cache
def texts_in(language: str) -> Mapping[str, str]:
    """The texts of the dialog's folder."""
    text = (FOLDER / "texts" / f"{language}.yaml").read_text(encoding="utf-8")
    found: Mapping[str, str] = yaml.safe_load(
        re.sub(r"\{text\.(organisation_\w+)\}", lambda name: say(name[1], language), text)
    )
    return found


def english(name: str, **values: str | int) -> str:
    """What the dialog says: a text of its folder, or a sentence of Ada."""
    if name not in (texts := texts_in("en")):
        return in_language(sentence(name, **values), "en")
    found = texts[name]
    for key, value in values.items():
        found = found.replace(f"{{{key}}}", str(value))
    return found


async def open_school(
    stack: Stack,
    bot_api: BotApi,
    directory_of_courier: Path,
    quotas: Mapping[str, Quota] | None = None,
    quiet_hours: TenantQuietHours | None = None,
    clock: Callable[[], datetime] | None = None,
    language: str = "en",
) -> School:
    """The school with its people and groups; the bot does not run yet. `language`: of the teacher and the student."""
    store, directory, outbox = stack.store, Directory(stack.store), Outbox()
    rules = SendingPolicy(quotas or {"trainer": Quota(4, timedelta(days=1))}, quiet_hours or TenantQuietHours())
    core = replace(Services.on(store, rules), tracker=stack.tracker)
    sending = Sending(store, core.deliveries, directory, rules, clock=clock or (lambda: datetime.now(UTC)))
    core = replace(core, sending=sending)
    speakers = [structs.replace(user, locale=language) for user in (ANNA, BORIS)]
    for user in (*speakers, VERA, GLEB):
        await directory.users.create(TENANT, user)
    for group, members in ((Group(101, "ИВТ-101"), [2, 3, 4]), (Group(102, "ИВТ-102"), [2]), (Group(103, "Пусто"), [])):
        await directory.groups.create(TENANT, group, members)
        await directory.ownerships.own(TENANT, 1, "group", group.id)
    await directory.supergroups.create(TENANT, Supergroup("all", "Весь поток", [101, 102]))
    await directory.ownerships.own(TENANT, 1, "supergroup", "all")
    sms = FakeCourier("sms")
    await stack.courier(sms)
    telegram = await telegram_bot.open(
        telegram_bot.Settings(bot_api.server.token, bot_api.server.url), directory_of_courier
    )
    await stack.courier(telegram, PATIENT)
    return School(stack, bot_api, outbox, sms, core, Linking(store, directory, LinkCodeMailer(outbox)))
