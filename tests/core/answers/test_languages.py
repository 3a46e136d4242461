"""Who has stated no language reads all of Ada in that of the text that it has got; who has, in its own."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pytest

from core.answers import AnswerNumbers, OpenQuestions
from core.answers.values import in_language
from core.deliveries.received import ReceivedMessages
from core.model.delivery import Accepted, NewDelivery, Recipient
from core.model.people import User
from core.model.question import AnswerKind, Option, Question
from core.orders import Caller, Order
from core.orders.order import Addressee
from core.orders.question_rules import options_of
from core.queue import QueueClient
from core.sentence import language_of, language_of_text, say
from core.services import Services
from core.updates.events import Events
from tests.core.answers.test_answers import BOT, SHOWS, Asked, asking
from tests.core.answers.test_numbers import SMS, SmsCourier
from tests.support.stack import SENDER, TENANT, FakeCourier, Stack
from tests.support.waiting import until

TEXTS = {"en": "How many of you?", "ru": "Сколько вас?"}
BOB, CAROL = "100002", "100003"
PEOPLE = pytest.mark.parametrize(
    ("stated", "of_text", "language"),
    [
        pytest.param("ru", "en", "ru", id="ru stated, below en"),
        pytest.param("en", "ru", "en", id="en stated, below ru"),
        pytest.param(None, "en", "en", id="nothing stated, below en"),
        pytest.param(None, "ru", "ru", id="nothing stated, below ru"),
    ],
)


@dataclass
class MailCourier(FakeCourier):
    """A courier whose messages have a line of Ada below them."""

    channel: str = "email"
    links_preferences: Literal[True] = True


@dataclass
class Speaking:
    """Anna (1) and Bob (2), who get questions of Boris (7), all of whom have stated the same. `language`: in which Ada
    is expected to speak to them. `text`: what Boris writes.
    """

    asked: Asked
    services: Services
    couriers: Mapping[str, FakeCourier]
    text: str
    language: str

    def said(self, code: str, **values: object) -> str:
        return say(code, self.language, **values)

    async def ask(self, channel: str, kind: AnswerKind, *options: Option, people: Sequence[int] = (1,)) -> Accepted:
        locale = language_of(language_of_text(self.text))
        question = Question(kind, options_of(kind, options, locale), locale)
        given = NewDelivery(TENANT, SENDER, self.text, (), [channel], question=question, replies="sender")
        order = Order(given, [Addressee(id=one) for one in people], urgent=True)
        accepted = await self.services.sending.send(order, Caller(TENANT, is_admin=True, may_be_urgent=True))
        await self.asked.stack.finished(accepted.key)
        return accepted

    async def write(self, name: str, text: str) -> None:
        store = self.asked.stack.store
        events = Events(QueueClient(store), TENANT, received=ReceivedMessages(store), numbers=AnswerNumbers(store))
        event = {"id": name, "channel": BOT, "kind": "text", "user_id": "100001", "event_text": text}
        await events.put(TENANT, event)

    async def reads(self, text: str, channel: str = BOT, address: str = "100001") -> None:
        """Wait until an address has got a message that begins so, or ends so."""

        def has_it() -> bool:
            got = [one.text for one in self.couriers[channel].attempted if one.address == address]
            return any(one.startswith(text) or one.endswith(text) for one in got)

        await until(has_it)


@pytest.fixture
async def speaking(stack: Stack, stated: str | None, of_text: str, language: str) -> AsyncIterator[Speaking]:
    services = Services.on(stack.store)
    contacts = {BOT: ["100001"], SMS: ["+79990000001"], "email": ["anna@example.org"]}
    await services.directory.users.create(TENANT, User(1, "Anna", locale=stated, contacts=contacts))
    for number, address in ((2, BOB), (3, CAROL), (SENDER.id, "100007")):
        await services.directory.users.create(TENANT, User(number, locale=stated, contacts={BOT: [address]}))
    bot, others = FakeCourier(BOT, shows=SHOWS), {SMS: SmsCourier(), "email": MailCourier()}
    for one in others.values():
        await stack.courier(one)
    async with asking(stack, bot) as asked:
        yield Speaking(asked, services, {BOT: bot, **others}, TEXTS[of_text], language)
    await services.live.close()
    await services.tracker.close()
    await services.client.close()


@PEOPLE
async def test_what_stands_below_a_text_and_is_said_about_an_answer_in_words(speaking: Speaking) -> None:
    accepted = await speaking.ask(BOT, AnswerKind.NUMBER)
    await speaking.reads(f"{speaking.text}\n{speaking.said('ask_in_reply_number')}")
    await OpenQuestions(speaking.asked.stack.store).remind(accepted.key, TENANT)
    await speaking.reads(f"{speaking.said('reminder')}\n{speaking.text}\n{speaking.said('ask_in_reply_number')}")
    await speaking.write("e1", "12x")
    await speaking.reads(speaking.said("wanted_number"))
    await speaking.write("e2", "12")
    await speaking.reads(speaking.said("answer_answered", answer="12"))
    await OpenQuestions(speaking.asked.stack.store).close(accepted.key, TENANT)
    await speaking.reads(speaking.said("totals_head", text=speaking.text), address="100007")


@PEOPLE
async def test_the_numbers_of_an_sms_and_the_line_below_a_mail(speaking: Speaking) -> None:
    await speaking.ask(SMS, AnswerKind.CONFIRM)
    option = speaking.said("ask_option", number=1, text=speaking.said("confirmation"))
    await speaking.reads(speaking.said("ask_with_numbers", options=option), SMS, "+79990000001")
    await speaking.ask("email", AnswerKind.CONFIRM)
    assert [one.language for one in speaking.couriers["email"].attempted] == [speaking.language]


@PEOPLE
async def test_what_a_press_leads_to_and_why_it_is_refused(speaking: Speaking) -> None:
    asked = speaking.asked
    await speaking.ask(BOT, AnswerKind.CONFIRM)
    data = asked.button("100001")
    await asked.press("100001", data)
    await asked.press(BOB, data)
    assert asked.texts == [speaking.said("answer_confirmed"), speaking.said("press_answer_not_yours")]
    assert asked.labels == [f"✓ {speaking.said('confirmation')}"]


@PEOPLE
async def test_who_waits_for_a_place_and_who_gets_one(speaking: Speaking) -> None:
    asked, options = speaking.asked, (Option("yes", "OK", 1), Option("no", "–"))
    accepted = await speaking.ask(BOT, AnswerKind.CHOICE, *options, people=(1, 2, 3))
    for address, option in (("100001", 0), (BOB, 0), (CAROL, 0), ("100001", 1)):
        await asked.press(address, asked.button(address, option))
    await speaking.reads(speaking.said("place_given", option="OK", text=speaking.text), address=BOB)
    await OpenQuestions(asked.stack.store).close(accepted.key, TENANT)
    await speaking.reads(speaking.said("place_none", text=speaking.text), address=CAROL)


@PEOPLE
async def test_a_member_of_a_group_chat(speaking: Speaking) -> None:
    asked, chat = speaking.asked, "-100500"
    locale = language_of(language_of_text(speaking.text))
    question = Question(AnswerKind.CONFIRM, options_of(AnswerKind.CONFIRM, (), locale), locale)
    await asked.ask(question, Recipient("class", contacts={BOT: [chat]}), text=speaking.text)
    event = {"channel": BOT, "kind": "callback", "user_id": "100001", "chat_id": chat, "chat_type": "supergroup"}
    press = {**event, "id": "e1", "message_id": 5, "callback_id": "e1", "callback_data": asked.button(chat)}
    await Events(QueueClient(asked.stack.store), TENANT).put(TENANT, press)
    await until(lambda: asked.texts == [speaking.said("answer_confirmed")])


@pytest.mark.parametrize(
    ("kind", "text", "shown"),
    [
        (AnswerKind.CONFIRM, "I have read it", "Прочитано"),
        (AnswerKind.CONFIRM, "I agree", "I agree"),
        (AnswerKind.CHOICE, "I have read it", "I have read it"),
    ],
)
def test_only_the_usual_option_of_a_confirmation_is_translated(kind: AnswerKind, text: str, shown: str) -> None:
    asked = in_language(Question(kind, [Option("read", text)], "en"), "ru")
    assert ([one.text for one in asked.options], asked.locale) == ([shown], "ru")
