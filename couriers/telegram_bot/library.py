"""aiogram, with the schemas of the models that Ada uses. Every other module gets aiogram from here.

aiogram builds the schemas of all its 600 models while it is imported, which takes 4 s and 130 MB. This module leaves
that out and then builds the models of `USED`: 1.2 s and 26 MB. A model that is not built raises PydanticUserError when
it is used. If another version of pydantic or aiogram builds in another way, all models are built, which is only slower.
"""

from typing import Any

from pydantic import BaseModel

_model_rebuild = vars(BaseModel)["model_rebuild"]
BaseModel.model_rebuild = classmethod(lambda cls, **options: None)  # type: ignore[method-assign, assignment]
try:
    from aiogram import Bot, exceptions, methods, types
    from aiogram.client.default import Default
    from aiogram.client.session.base import BaseSession
    from aiogram.client.telegram import TelegramAPIServer
    from aiogram.methods import Response, TelegramMethod
finally:
    BaseModel.model_rebuild = _model_rebuild  # type: ignore[method-assign]

__all__ = [
    "BaseSession",
    "Bot",
    "Response",
    "TelegramAPIServer",
    "TelegramMethod",
    "build",
    "exceptions",
    "methods",
    "types",
]

NAMES = {**vars(types), "Default": Default}
"""The names in the annotations of the models."""


def build(model: Any) -> Any:
    """Return a model with its schema, which is built if it is not yet."""
    model.model_rebuild(_types_namespace=NAMES)
    return model


USED = (
    types.InlineKeyboardButton, types.InlineKeyboardMarkup, types.InputMediaAnimation, types.InputMediaAudio,
    types.InputMediaDocument, types.InputMediaPhoto, types.InputMediaVideo, types.KeyboardButton,
    types.ReplyKeyboardMarkup, types.ReplyKeyboardRemove, types.ReplyParameters, methods.AnswerCallbackQuery,
    methods.CreateForumTopic, methods.DeleteMessages, methods.DeleteWebhook, methods.EditMessageCaption,
    methods.EditMessageMedia,
    methods.EditMessageReplyMarkup, methods.EditMessageText, methods.GetFile, methods.GetMe, methods.GetUpdates,
    methods.SendAnimation, methods.SendAudio, methods.SendChatAction, methods.SendDocument, methods.SendMediaGroup,
    methods.SendMessage, methods.SendPhoto, methods.SendVideo, methods.SendVoice, methods.SetWebhook, Response[Any],
)  # fmt: skip
for _model in USED:
    build(_model)
