"""answerInlineQuery: what the bot offers to a person who wrote its name and some words in any chat."""

from collections.abc import Mapping
from typing import Any

from sandbox.bot_api.messages.formatting import parse_text, utf16_length
from sandbox.bot_api.messages.sending import MAX_TEXT
from sandbox.bot_api.state.bot import Bot
from sandbox.bot_api.state.errors import bad_request
from sandbox.bot_api.state.parameters import Parameters

MAX_RESULTS = 50
MAX_ID = 64  # bytes, of a result and of next_offset

Json = dict[str, Any]


def answer_inline_query(bot: Bot, parameters: Parameters) -> bool:
    """Store the results of an inline query. Only results of the type article are read in detail."""
    query = bot.open_query(parameters.text("inline_query_id"))
    results = parameters.json("results")
    if not isinstance(results, list) or not all(isinstance(one, dict) for one in results):
        raise bad_request("can't parse results JSON object")
    if len(results) > MAX_RESULTS:
        raise bad_request("RESULTS_TOO_MUCH")
    if len({one.get("id") for one in results}) < len(results):
        raise bad_request("RESULT_ID_DUPLICATE")
    if len(parameters.text("next_offset").encode()) > MAX_ID:
        raise bad_request("NEXT_OFFSET_INVALID")
    shown = [_shown(one) for one in results]
    query.answer = {
        "results": shown,
        "next_offset": parameters.text("next_offset"),
        "cache_time": parameters.integer("cache_time", 300),
        "is_personal": parameters.flag("is_personal"),
    }
    return True


def _shown(result: Json) -> Json:
    """Return what the person sees of a result, and the text that it sends. Raises ApiError."""
    if not 1 <= len(str(result.get("id") or "").encode()) <= MAX_ID:
        raise bad_request("RESULT_ID_INVALID")
    if result.get("type") != "article":
        return {"type": str(result.get("type"))}
    if not result.get("title"):
        raise bad_request('can\'t find field "title"')
    content = result.get("input_message_content") or {}
    text, _ = parse_text(str(content.get("message_text") or ""), str(content.get("parse_mode") or ""))
    if not text.strip() or utf16_length(text) > MAX_TEXT:
        raise bad_request("MESSAGE_EMPTY" if not text.strip() else "MESSAGE_TOO_LONG")
    return {
        "type": "article",
        "title": result["title"],
        "description": result.get("description", ""),
        "url": result.get("url", ""),
        "text": text,
    }


INLINE: Mapping[str, Any] = {"answerInlineQuery": answer_inline_query}
