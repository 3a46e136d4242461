"""A person at the inbox page in a browser, and a bot that answers; `page` and `bot` are fixtures."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from sandbox.sandbox import Sandbox
from tests.sandbox.bot_api_clients import session
from tests.support.browser import Browser
from tests.support.whole_aiogram import Bot, Command, Dispatcher, types

HOSTILE = "<script>document.title = 'stolen'</script> \"quotes\" 'and' &amp; <img src=x onerror=alert(1)> 🙂"


class PersonAtThePage:
    """Sees and does what a person can in a chat of the page."""

    def __init__(self, sandbox: Sandbox, browser: Browser) -> None:
        self.sandbox, self.browser = sandbox, browser

    async def open(self, tab: str = "", language: str = "en") -> None:
        await self.browser.open(f"{self.sandbox.page_url}{tab}", language)

    async def sees(self, text: str, within: str = "body") -> None:
        """Wait until the text is shown there."""
        await self.browser.wait_for(
            f"document.querySelector({json.dumps(within)})?.innerText.includes({json.dumps(text)})"
        )

    async def sees_no(self, text: str, within: str = "body") -> None:
        await self.browser.wait_for(
            f"!document.querySelector({json.dumps(within)}).innerText.includes({json.dumps(text)})"
        )

    async def sees_in_chat(self, channel: str, text: str) -> None:
        await self.sees(text, f"#chat-{channel}")

    async def write(self, channel: str, text: str) -> None:
        """Type the text into the chat, and press Enter."""
        await self.browser.wait_for(f"document.querySelector('#write-{channel}') !== null")
        await self.browser.type(f"#write-{channel}", text)

    async def press(self, text: str, within: str = "#chat-telegram-bot") -> None:
        """Press the last button whose text contains this one."""
        buttons = f"[...document.querySelectorAll({json.dumps(within + ' button')})]"
        found = f"{buttons}.filter((one) => one.innerText.includes({json.dumps(text)})).at(-1)"
        await self.browser.wait_for(f"{found} !== undefined")
        await self.browser.run(f"{found}.focus(), {found}.click()")

    async def chat(self, channel: str) -> str:
        return await self.browser.text(f"#chat-{channel} .log")


@pytest.fixture
def page(sandbox: Sandbox, browser: Browser) -> PersonAtThePage:
    return PersonAtThePage(sandbox, browser)


@pytest.fixture
async def bot(sandbox: Sandbox) -> AsyncIterator[Bot]:
    """An unmodified aiogram that polls the sandbox. It answers /start, a button, and repeats other texts."""
    client = Bot(sandbox.environment["ADA_BOT_TOKEN"], session=session(sandbox.bot_api))
    dispatcher = Dispatcher()
    dispatcher.message(Command("start"))(_offer)
    dispatcher.message()(_repeat)
    dispatcher.callback_query()(_toggle)
    polling = asyncio.create_task(dispatcher.start_polling(client, handle_signals=False, polling_timeout=1))
    yield client
    await dispatcher.stop_polling()
    await polling


def _keyboard(is_chosen: bool) -> types.InlineKeyboardMarkup:
    button = types.InlineKeyboardButton(text=f"{'☑' if is_chosen else '☐'} ИВТ-21", callback_data=str(is_chosen))
    return types.InlineKeyboardMarkup(
        inline_keyboard=[[button], [types.InlineKeyboardButton(text="Site", url="https://x.org")]]
    )


async def _offer(message: types.Message) -> None:
    rows = [[types.KeyboardButton(text="Menu")]]
    await message.answer(HOSTILE, parse_mode=None, reply_markup=types.ReplyKeyboardMarkup(keyboard=rows))
    await message.answer("Choose a group", reply_markup=_keyboard(False))


async def _repeat(message: types.Message) -> None:
    name = message.from_user.full_name if message.from_user else ""
    await message.answer(f"{name} wrote: {message.text or message.contact}", parse_mode=None)


async def _toggle(query: types.CallbackQuery) -> None:
    assert isinstance(query.message, types.Message)
    is_chosen = query.data == "False"
    await query.message.edit_text(f"chosen: {is_chosen}", reply_markup=_keyboard(is_chosen))
    await query.answer(f"<b>{'chosen' if is_chosen else 'not chosen'}</b>")
