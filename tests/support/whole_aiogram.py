"""Import this for aiogram as other programs have it: with all models, also those that Ada does not build.

Each is built when a test first uses it. All at once take seconds, and every pytest worker imports all tests.
"""

from typing import Any

from aiogram.methods import Response, TelegramMethod
from aiogram.types import TelegramObject
from pydantic import BaseModel

from couriers.telegram_bot.library import NAMES


def rebuild(model: type[BaseModel], /, **options: Any) -> bool | None:
    """As pydantic calls it at the first use; the names in annotations are those of aiogram."""
    done: bool | None = vars(BaseModel)["model_rebuild"].__func__(model, **{"_types_namespace": NAMES, **options})
    return done


for base in (TelegramObject, TelegramMethod, Response):
    base.model_rebuild = classmethod(rebuild)  # type: ignore[method-assign, assignment]
