"""A bare aiogram bot, to compare scenarios with: it answers "one" with a message and "five" with five, without a store.

`python -m bench.scenarios.aiogram_bot`; the bot of ADA_BOT_TOKEN at ADA_BOT_API_URL, by long polling.
"""

import asyncio
import os

from aiogram import Bot, Dispatcher
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.types import Message

from cli.processes.startup import stop_requested
from cli.processes.supervisor import announce

ANSWERS = {"one": ("1",), "five": ("1", "2", "3", "4", "5")}


async def poll() -> None:
    session = AiohttpSession(api=TelegramAPIServer.from_base(os.environ["ADA_BOT_API_URL"]))
    bot, dispatcher = Bot(os.environ["ADA_BOT_TOKEN"], session=session), Dispatcher()

    @dispatcher.message()
    async def answer(message: Message) -> None:
        for text in ANSWERS.get(message.text or "", ()):
            await message.answer(text)

    await bot.me()
    polling = asyncio.create_task(dispatcher.start_polling(bot, handle_signals=False))
    announce(ready=True)
    await stop_requested().wait()
    await dispatcher.stop_polling()
    await polling


if __name__ == "__main__":
    asyncio.run(poll())
