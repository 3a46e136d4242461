"""What a thread sends to one side has nothing of the other in it but its name and its own words (R-23).

The people of a test use different providers, so all that goes to one provider goes to one side.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from sandbox.bot_api.state.parameters import Upload
from sandbox.sandbox import Sandbox
from tests.core.threads.test_metadata import GREY
from tests.support.stack import Stack
from tests.system.end_to_end.neighbours import Neighbours, OneSide, opened

DOTS = GREY[-40:]
"""The dots of the photographs, as they go out."""


@pytest.fixture
def is_bot() -> bool:
    return False


@pytest.fixture
async def town(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_bot: bool
) -> AsyncIterator[Neighbours]:
    sandbox = Sandbox(tmp_path / "sandbox")
    await sandbox.start()
    async with AsyncExitStack() as until_closed:
        yield await opened(stack, sandbox, tmp_path, until_closed, monkeypatch, is_bot)
        for runtime in stack.runtimes:
            await stack.stop(runtime)
    await sandbox.stop()


async def test_a_photograph_says_nothing_of_its_owner_to_the_other_side(town: Neighbours) -> None:
    sides = town.sides
    pairs = [("telegram-bot", "vk"), ("vk", "max"), ("max", "telegram-bot")]
    for number, (teacher, student) in enumerate((sides[a], sides[b]) for a, b in pairs):
        text, question, answer = f"Show me, {number}", f"My work, {number}", f"Look, {number}"
        await town.order(teacher, student, text)
        for here, there, quoted, words in ((student, teacher, text, question), (teacher, student, question, answer)):
            before = there.sent().count(DOTS)
            here.send_photograph(words, await town.gets(here, quoted))
            await there.gets(words)
            assert there.sent().count(DOTS) > before
            assert [secret for secret in here.secrets if secret.encode() in there.sent()] == []


async def test_a_document_says_nothing_of_its_author_to_the_other_side(town: Neighbours) -> None:
    sides = town.sides
    pairs = [("telegram-bot", "vk"), ("vk", "max"), ("max", "telegram-bot"), ("max", "vk")]
    for number, (teacher, student) in enumerate((sides[a], sides[b]) for a, b in pairs):
        text, question, answer = f"Write it, {number}", f"My work, {number}", f"See this, {number}"
        await town.order(teacher, student, text)
        for here, there, quoted, words in ((student, teacher, text, question), (teacher, student, question, answer)):
            document = here.documents()[number]
            here.send_file("document", document, words, await town.gets(here, quoted))
            await there.gets(words)
            await there.is_sent(document.name.encode())
            assert [secret for secret in here.secrets if secret.encode() in there.sent()] == []


async def test_neither_side_sees_an_address_of_the_other_that_it_has_not_typed(
    town: Neighbours, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    sides = town.sides
    pairs = [(sides["telegram-bot"], sides["vk"]), (sides["vk"], sides["max"])]
    pairs += [(sides["max"], sides[student]) for student in ("sms", "telegram-bot", "email", "telegram")]
    for number, (teacher, student) in enumerate(pairs):
        text, question, answer = f"No classes, {number}", f"And on Friday, {number}?", f"At ten, {number}."
        await town.order(teacher, student, text)
        await town.writes(student, question, await town.gets(student, text))
        await town.writes(teacher, answer, await town.gets(teacher, question))
        await student.gets(answer)
        for here, there in ((teacher, student), (student, teacher)):
            assert [secret for secret in there.secrets if secret.encode() in here.sent()] == []
    sides["telegram-bot"].corrects("On Saturday?")
    await sides["max"].gets("Person 1 corrects:\nOn Saturday?")
    sides["vk"].corrects("At eleven.")
    await sides["max"].gets("Person 2 corrects:\nAt eleven.")
    for number in (0, 2, 4, 5):
        await town.shows_typed_addresses(*pairs[number], number)
    said = [one for one in caplog.messages if any(words in one for words in ("Friday", "At ten", "Mine is"))]
    shown = [one for one in caplog.messages if any(part in one for side in sides.values() for part in side.secrets)]
    assert (said, shown) == ([], [])


@pytest.mark.parametrize("is_bot", [True])
async def test_what_is_written_to_a_bot_over_mtproto_says_nothing_of_its_author(town: Neighbours) -> None:
    """Words, files, voices, edits and forwards, of a student and of a teacher; and what comes back to it."""
    sides = town.sides
    bot = sides["telegram"]
    await town.order(sides["max"], bot, "To the bot")
    bot.forward("Passed on")
    await sides["max"].gets("Passed on")
    await sends_everything(bot, sides["max"], await town.gets(bot, "To the bot"))
    sides["max"].send_photograph("Back to the bot", await town.gets(sides["max"], "A voice for max"))
    await bot.gets("Back to the bot")
    before = bot.sent().count(DOTS)
    assert before
    await town.order(bot, sides["vk"], "From the bot")
    sides["vk"].send_photograph("A question of vk", await town.gets(sides["vk"], "From the bot"))
    await sends_everything(bot, sides["vk"], await town.gets(bot, "A question of vk"))
    assert bot.sent().count(DOTS) > before
    found = [secret for one in (sides["max"], sides["vk"]) for secret in one.secrets if secret.encode() in bot.sent()]
    assert found == []
    await town.order(bot, sides["vk"], "At ten, 9")
    await town.writes(sides["vk"], "Friday, 9", await town.gets(sides["vk"], "At ten, 9"))
    await town.shows_typed_addresses(bot, sides["vk"], 9)


async def sends_everything(here: OneSide, there: OneSide, quoted: str) -> None:
    """Send a photograph, a document and a voice, and edit the last; the other side gets them without their author."""
    name, document, voice = there.channel, here.documents()[0], here.documents()[3]
    here.send_photograph(f"A photograph for {name}", quoted)
    await there.is_sent(DOTS)
    here.send_file("document", document, f"A document for {name}", quoted)
    await there.is_sent(document.name.encode())
    here.send_file("voice", Upload("", "audio/ogg", voice.content), f"A voice for {name}", quoted)
    await there.is_sent(b"OpusTags")
    here.corrects(f"Corrected for {name}")
    await there.gets(f"corrects:\nCorrected for {name}")
    assert [secret for secret in here.secrets if secret.encode() in there.sent()] == []
