"""aiogram as other programs have it: with all models, also those that Ada does not build. Tests get it from here.

Each model is built when a test first uses it. All at once take seconds, and every pytest worker imports all tests.
"""

from typing import Any

from pydantic import BaseModel

from couriers.telegram_bot.library import NAMES  # first: it imports aiogram without building anything

# isort: split
from aiogram import Bot, Dispatcher, exceptions, types
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.filters import Command
from aiogram.methods import Response, TelegramMethod
from aiogram.webhook.aiohttp_server import SimpleRequestHandler

__all__ = [
    "AiohttpSession",
    "Bot",
    "Command",
    "Dispatcher",
    "SimpleRequestHandler",
    "TelegramAPIServer",
    "exceptions",
    "types",
]


def rebuild(model: type[BaseModel], /, **options: Any) -> bool | None:
    """As pydantic calls it at the first use; the names in annotations are those of aiogram."""
    done: bool | None = vars(BaseModel)["model_rebuild"].__func__(model, **{"_types_namespace": NAMES, **options})
    return done


for base in (types.TelegramObject, TelegramMethod, Response):
    base.model_rebuild = classmethod(rebuild)  # type: ignore[method-assign, assignment]
