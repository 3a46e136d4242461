"""Groups and states from a person's update in Telegram to the message in the chat: bot, scenarios and courier are the
real ones, each talks to the sandbox's Bot API.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.commands.parts.bot import ReceivingBots
from core.services import Services
from couriers.telegram_bot import courier as telegram_bot
from sandbox.bot_api.state.parameters import Upload
from tests.sandbox.bot_api_clients import ANNA, BORIS, GROUP, BotApi, bot_api
from tests.scenarios.execution.conftest import WITHIN, Installation
from tests.support.receiving import receiving_bot, running
from tests.support.stack import QUICK
from tests.support.waiting import until

__all__ = ["bot_api"]

SCENARIOS = """
ask:
  actions:
    - {type: user, user_state: question}
    - {type: send, text: "Ваш вопрос?"}
take:
  actions:
    - {type: user, user_state: ""}
    - {type: request, request_name: question}
    - {type: send, text: "Записано: <b>{request_text}</b>", chain: completed}
list:
  actions:
    - {type: request_management, required_role: staff}
    - {type: send, additional_text: " — всё", chain: completed}
    - {type: send, text: "Не для вас", chain: drop}
welcome:
  actions:
    - {type: send, text: "Здравствуйте, {joined_usernames|tags}! Вас позвал {invite_link_creator_username}."}
link:
  actions:
    - {type: invite_link, member_limit: 1, group_admin: true}
    - {type: send, text: "{invite_link}", private_answer: true, chain: completed}
    - {type: send, text: "Нельзя", message_reply: true, chain: drop}
edited:
  actions:
    - {type: send, text: "Теперь: {event_text_html}", message_reply: true}
left:
  actions:
    - {type: send, text: "{first_name} больше не с нами ({initiator_user_id})."}
promoted:
  actions:
    - {type: send, text: "{initiator_first_name}: {first_name} — {member_title}, {member_rights|length} прав"}
changed:
  actions:
    - {type: send, text: "{first_name}: {member_status_before} → {member_status}"}
asked:
  actions:
    - {type: answer_join, chain_drop: failed}
    - {type: send, text: "Добро пожаловать по {invite_link}", private_answer: true, chain: completed}
refused:
  actions:
    - {type: answer_join, approve: false}
    - {type: send, text: "Увы", private_answer: true, chain: completed}
closed:
  actions:
    - {type: invite_link, requires_approval: true}
    - {type: send, text: "{invite_link}", private_answer: true, chain: completed}
archive:
  actions:
    - {type: copy, chat_to: THE_CLUB, chain_drop: failed}
    - {type: send, text: "{last_message_id}", chain: completed}
offer:
  actions:
    - type: send
      text: "Записаться?"
      inline: [["Да", "Нет", {Подробнее: closed_button}, Забытая]]
yes:
  actions:
    - {type: answer_press, text: "Место за вами, {first_name}!", alert: true}
    - {type: answer_press, text: "Второго ответа не бывает", chain: completed}
    - {type: send, text: "Ждём вас", chain: completed}
no:
  actions:
    - {type: answer_press, text: "LONG"}
closed_button: {actions: [{type: send, text: "Подробности"}]}
card:
  actions:
    - {type: qr_code, start: room-12}
    - {type: send, text: "{qr_text}", attachment: {file: "{qr_file}", type: photo}, chain: completed}
search:
  actions:
    - type: answer_inline
      results:
        - {title: "Книга {event_text|upper}", text: "Читаю <{event_text}>"}
        - "Просто текст"
"""


@dataclass
class Town:
    """The people of Telegram and what their chats show."""

    bot_api: BotApi

    def texts(self, chat: int) -> list[str]:
        """What the bot has written in a chat."""
        messages = self.bot_api.server.people.messages(chat)
        return [one["text"] for one in messages if one["from"]["is_bot"]]

    async def next_text(self, chat: int, act: Any) -> str:
        """What the bot writes in a chat after a person has acted."""
        before = len(self.texts(chat))
        act()
        await until(lambda: len(self.texts(chat)) > before, within=WITHIN)
        return self.texts(chat)[before]

    async def answer(self, user: int, text: str, chat: int = 0, shown_in: int = 0) -> str:
        """What the bot answers to a text."""
        return await self.next_text(
            shown_in or chat or user, lambda: self.bot_api.server.people.write(user, text, chat or None)
        )


def bot_of(installation: Installation, api: BotApi) -> ReceivingBots:
    stack = installation.stack
    core = replace(Services.on(stack.store), deliveries=stack.deliveries, tracker=stack.tracker)
    return receiving_bot(api.server.token, api.server.url, core, ADA_SCENARIOS=str(installation.folder))


@pytest.fixture
async def town(bare: Installation, bot_api: BotApi, tmp_path: Path) -> AsyncIterator[Town]:
    """A club that Boris administers; he is staff. There are no other members."""
    server = bot_api.server
    server.joining.set_up(GROUP, title="Клуб", administrators=[BORIS])
    bare.options = {"telegram": bot_api.named_calls}
    bare.write("bot.yaml", f"roles: {{staff: {{users: [{BORIS}]}}}}").write(
        "scenarios/t.yaml", SCENARIOS.replace("THE_CLUB", str(GROUP)).replace("LONG", "н" * 300)
    )
    bare.write(
        "triggers.yaml",
        "text: {exact: {/ask: t.ask, /list: t.list, /offer: t.offer, /card: t.card}, state: {question: t.take}, "
        '"*": {scenario: t.archive, forward_enabled: true}}\n'
        'callback: {exact: {Да: t.yes, Нет: t.no}}\nedited: {"*": t.edited}\n'
        "inline_query: {starts_with: {книга: t.search}}",
    )
    bare.write(
        "group_triggers.yaml",
        "text: {exact: {/link: t.link, /closed: t.closed}}\nnew_member: {default: t.welcome}\n"
        "left_member: {default: t.left}\n"
        "changed_member: {status: {administrator: t.promoted}, default: t.changed}\n"
        "join_request: {group: {Закрытый клуб: t.refused}, default: t.asked}",
    )
    courier = await telegram_bot.open(telegram_bot.Settings(server.token, server.url, timedelta(seconds=5)), tmp_path)
    await bare.stack.courier(courier, QUICK)
    async with running(bot_of(bare, bot_api)):
        await bare.start()
        yield Town(bot_api)
    await courier.close()


async def test_a_question_is_asked_taken_and_shown_to_the_staff(town: Town) -> None:
    assert await town.answer(ANNA, "/ask") == "Ваш вопрос?"
    assert await town.answer(ANNA, "Где <ключ>?") == "Записано: Где <ключ>?"
    listed = await town.answer(BORIS, "/list")
    assert "Где <ключ>?" in listed
    assert listed.endswith(" — всё")
    assert await town.answer(ANNA, "/list") == "Не для вас"


async def test_an_administrator_gets_a_link_and_who_joins_by_it_is_welcomed(town: Town) -> None:
    link = await town.answer(BORIS, "/link", GROUP, shown_in=BORIS)
    assert link.startswith("https://t.me/+")
    join = town.bot_api.server.joining.join
    anna = town.bot_api.server.people.set_person(ANNA, username="anna")
    welcome = await town.next_text(GROUP, lambda: join(ANNA, link=link))
    assert welcome == f"Здравствуйте, @{anna.username}! Вас позвал sandbox4343_bot."
    assert await town.answer(ANNA, "/link", GROUP) == "Нельзя"


async def test_each_edit_of_a_message_is_answered(town: Town) -> None:
    people = town.bot_api.server.people
    await town.answer(ANNA, "черновик")
    for text in ("<готово>", "совсем"):
        assert await town.next_text(ANNA, lambda text=text: people.edit(ANNA, 1, text)) == f"Теперь: {text}"


async def test_who_leaves_a_group_is_named_once(town: Town) -> None:
    joining = town.bot_api.server.joining
    anna = town.bot_api.server.people.set_person(ANNA, name="Анна")
    await town.next_text(GROUP, lambda: joining.join(ANNA, GROUP))
    left = await town.next_text(GROUP, lambda: joining.leave(ANNA, GROUP))
    assert left == f"{anna.first_name} больше не с нами ({ANNA})."
    assert (await town.answer(BORIS, "/link", GROUP, shown_in=BORIS)).startswith(
        "https://"
    )  # later than a second notice
    assert len([text for text in town.texts(GROUP) if "больше не с нами" in text]) == 1


async def test_who_is_promoted_and_who_is_restricted_is_named(town: Town) -> None:
    joining, people = town.bot_api.server.joining, town.bot_api.server.people
    for user, name in ((ANNA, "Анна"), (BORIS, "Борис")):
        people.set_person(user, name=name)
    await town.next_text(GROUP, lambda: joining.join(ANNA, GROUP))
    rights = ("can_invite_users", "can_delete_messages")
    promote = lambda: joining.promote(ANNA, GROUP, by=BORIS, rights=rights, title="староста")  # noqa: E731
    assert await town.next_text(GROUP, promote) == "Борис: Анна — староста, 2 прав"
    demote = lambda: joining.promote(ANNA, GROUP, by=BORIS, rights=())  # noqa: E731
    assert await town.next_text(GROUP, demote) == "Анна: administrator → member"
    restrict = lambda: joining.restrict(ANNA, GROUP, by=BORIS)  # noqa: E731
    assert await town.next_text(GROUP, restrict) == "Анна: member → restricted"


async def test_a_request_to_join_is_approved_or_declined_by_the_scenario(town: Town) -> None:
    joining, link = town.bot_api.server.joining, await town.answer(BORIS, "/closed", GROUP, shown_in=BORIS)
    assert await town.next_text(ANNA, lambda: joining.join(ANNA, link=link)) == f"Добро пожаловать по {link}"
    assert joining.groups_of(ANNA) == {GROUP: "Клуб"}
    joining.leave(ANNA, GROUP)
    joining.set_up(GROUP, title="Закрытый клуб", administrators=[BORIS])
    assert await town.next_text(ANNA, lambda: joining.join(ANNA, link=link)) == "Увы"
    assert joining.groups_of(ANNA) == {}


async def test_an_inline_query_gets_the_results_of_the_scenario(town: Town) -> None:
    people = town.bot_api.server.people
    query = people.ask_inline(ANNA, "книга о <рыбах>")
    await until(lambda: people.answer(query) is not None, within=WITHIN)
    answer = people.answer(query)
    assert answer is not None
    assert [(one["title"], one["text"]) for one in answer["results"]] == [
        ("Книга КНИГА О <РЫБАХ>", "Читаю <книга о <рыбах>>"), ("Просто текст", "Просто текст"),
    ]  # fmt: skip
    assert (answer["is_personal"], answer["cache_time"]) == (True, 0)


@pytest.mark.parametrize(
    ("button", "text", "alert"),
    [
        ("Да", "Место за вами, Анна!", True),
        ("Нет", f"{'н' * 199}…", False),
        ("Подробнее", "", False),
        ("Забытая", "Эта кнопка сейчас ничего не делает.", False),  # no trigger: the clock ended and nothing followed
    ],
)
async def test_a_press_is_answered_once_by_the_scenario_or_without_a_text(
    town: Town, button: str, text: str, *, alert: bool
) -> None:
    people = town.bot_api.server.people
    people.set_person(ANNA, name="Анна")
    await town.answer(ANNA, "/offer")
    query = people.press(ANNA, people.messages(ANNA)[-1]["message_id"], button)
    await until(lambda: people.answer(query) is not None, within=WITHIN)
    if button == "Да":
        await until(lambda: "Ждём вас" in town.texts(ANNA), within=WITHIN)
    answer = people.answer(query)
    assert answer is not None
    assert (answer["text"], answer["alert"]) == (text, alert)
    assert town.bot_api.state.counter("telegram-bot", "answerCallbackQuery") == 1


async def test_a_qr_code_that_opens_the_bot_is_sent_as_a_photo(town: Town) -> None:
    people = town.bot_api.server.people
    people.write(ANNA, "/card")
    await until(lambda: people.messages(ANNA)[-1]["from"]["is_bot"], within=WITHIN)
    message = people.messages(ANNA)[-1]
    assert message["caption"] == "https://t.me/sandbox4343_bot?start=room-12"
    assert message["photo"]


async def test_a_message_is_copied_with_its_author_its_marks_and_its_files(town: Town) -> None:
    people = town.bot_api.server.people
    people.set_person(ANNA, name="Анна Ким", username="anna")
    number = int(await town.answer(ANNA, "a < b"))
    (copy,) = [one for one in people.messages(GROUP) if one["from"]["is_bot"]]
    assert copy["message_id"] == number
    header, text = copy["text"].split("\n")
    assert (header.split(" • ")[0], header.split(" • ")[2], text) == ("Анна Ким", "@anna", "a < b")
    photo = Upload("a.jpg", "image/jpeg", b"jpeg")
    await town.next_text(ANNA, lambda: people.send_file(ANNA, "photo", photo, caption="вот"))
    with_photo = people.messages(GROUP)[-1]
    assert with_photo["caption"].endswith("вот")
    assert people.file(with_photo["photo"][-1]["file_id"])[1] == b"jpeg"
    await town.next_text(ANNA, lambda: people.forward(ANNA, "новость", BORIS))
    assert people.messages(GROUP)[-1]["text"].split("\n")[1] == f"↪ {people.set_person(BORIS).first_name}"


async def test_a_reply_to_a_copied_message_replies_to_its_copy(town: Town) -> None:
    people = town.bot_api.server.people
    await town.answer(ANNA, "вопрос")
    first = people.messages(GROUP)[-1]
    await town.next_text(ANNA, lambda: people.reply(ANNA, 1, "ещё вопрос"))
    assert people.messages(GROUP)[-1]["reply_to_message"]["message_id"] == first["message_id"]
    await town.next_text(ANNA, lambda: people.reply(ANNA, 2, "о номере"))  # the bot's own answer was not copied
    assert "↩" in people.messages(GROUP)[-1]["text"]
