"""Answers an inline query: what a person may send who has written the bot's name and some words in any chat."""

from collections.abc import Mapping
from typing import Any

from core.errors import Invalid
from scenarios.context import Context
from scenarios.context.arguments import duration_of, flag_of, text_of
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.placeholders.values import as_text
from scenarios.schema import ActionType, Field, types
from scenarios.telegram.calls import call, required_bot

Json = dict[str, Any]

MOST = 50
"""Results of one answer, by Telegram's Bot API."""


async def execute(context: Context) -> Ending:
    """Answer an inline query. Telegram refuses it after some seconds. Raises Refused."""
    context.require("send")
    required_bot(context)
    seen = context.prepared.seen
    query, results = text_of(seen, "inline_query_id"), _results(seen)
    if not query:
        raise Invalid("NO_QUERY", "answer_inline answers an inline query; this event is none")
    max_age = duration_of(seen, "cache_max_age")
    await call(
        context,
        "answerInlineQuery",
        inline_query_id=query,
        results=results,
        cache_time=0 if max_age is None else int(max_age.total_seconds()),
        is_personal=flag_of(seen, "personal", default=True),
        next_offset=text_of(seen, "next_offset"),
    )
    return completed({"results_offered": len(results)})


def _results(seen: Mapping[str, Any]) -> list[Json]:
    """Return the results in the form of the Bot API. Raises Invalid."""
    written = seen.get("results")
    listed: list[Any] = list(written) if isinstance(written, list | tuple) else [written] * (written not in (None, ""))
    if len(listed) > MOST:
        raise Invalid("FIELD_INVALID", f"results: there are {len(listed)}, more than {MOST}", "results")
    return [_result(number, one) for number, one in enumerate(listed, 1)]


def _result(number: int, written: Any) -> Json:
    about = written if isinstance(written, Mapping) else {"title": as_text(written)}
    title = as_text(about.get("title")).strip()
    text = as_text(about.get("text")).strip() or title
    if not title:
        raise Invalid("FIELD_INVALID", f"results: the {number}. one has no title", "results")
    article = {"type": "article", "id": str(number), "title": title, "input_message_content": {"message_text": text}}
    more = {name: as_text(about.get(name)) for name in ("description", "url")}
    return {**article, **{name: value for name, value in more.items() if value}}


ACTION = ActionType(
    name="answer_inline",
    needs=("telegram",),
    help="Offers results to a person who has written the bot's name and some words in any chat (an event"
    " `inline_query`). The chosen result is sent by that person. Telegram waits for an answer only a few seconds.",
    placeholder=True,
    fields=(
        Field(
            "results",
            types.ANY,
            f"A list of at most {MOST} results: `{{title, text, description, url}}`, or texts. A text is"
            " sent as it is, without marks.",
        ),
        Field("personal", types.FLAG, "Whether the answer is only for this person.", default=True),
        Field("cache_max_age", types.DURATION, "How long Telegram may answer the same words itself.", default="0s"),
        Field("next_offset", types.TEXT, "What the event of the next page has as `inline_query_offset`."),
    ),
    returns={"results_offered": "how many results were offered"},
    execute=execute,
)
