"""Simulates Telegram's Bot API over HTTP well enough that an unmodified aiogram sends, edits, polls and gets webhooks.

    server = BotApiServer(SandboxState())
    await server.start()
    api = TelegramAPIServer.from_base(server.url)
    bot = Bot(server.token, session=AiohttpSession(api=api))
    server.people.write(100_001, "/start")                 # what a person does

`server` reads a call, injects `faults` and runs the method: of `messages`, `membership`, `chat_methods`, `commands` or
`update_methods`. All of them work on one `state.bot`; `people_actions` and `membership.joining` are the side of its
users. Every positive chat id is a person who has started the bot, with the name and phone of the same id in
`sandbox.telegram`; every negative one is a group.
Source: core.telegram.org/bots/api.
"""

from sandbox.bot_api.server import BotApiServer

__all__ = ["BotApiServer"]
