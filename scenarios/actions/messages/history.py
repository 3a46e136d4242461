"""Reads what was said in the chat before."""

from datetime import UTC, datetime
from typing import Any

from core.updates.events import person_of
from scenarios.context import Context
from scenarios.context.arguments import count_of, duration_of, flag_of, moment_of, text_of
from scenarios.context.conversations import Said
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.schema import ActionType, Field, types

DEFAULT, MOST = 20, 100


async def execute(context: Context) -> Ending:
    """Return the last messages. Later actions escape them, as a person has written them. Raises Refused."""
    own = context.prepared.own
    said = await context.services.conversations.last(
        person_of(context.event),
        text_of(own, "from_chat") or context.chat,
        limit=min(count_of(own, "limit") or DEFAULT, MOST),
        since=_since(context),
        without=context.run,
    )
    if not flag_of(own, "reverse", default=True):
        said = said[::-1]
    results = {
        "history_text": "\n".join(f"{one.by}: {one.text}" for one in said),
        "messages": [_shown(one, context) for one in said],
        "messages_processed": len(said),
    }
    return completed(results, from_person=["history_text", "messages"])


def _since(context: Context) -> datetime | None:
    own = context.prepared.own
    age = duration_of(own, "time_before")
    return moment_of(own, "time_before_date", context.services.timezone) or (datetime.now(UTC) - age if age else None)


def _shown(said: Said, context: Context) -> dict[str, Any]:
    at = said.at.astimezone(context.services.timezone).isoformat(timespec="seconds")
    return {"by": said.by, "is_bot": said.is_bot, "text": said.text, "date": at, "message_id": said.message_id}


ACTION = ActionType(
    name="history",
    help="Reads what the person wrote to the bot in this chat and what the bot answered, without this event. Only what"
    " started a scenario is stored; Telegram shows a bot no older messages, and none of other people.",
    fields=(
        Field("limit", types.WHOLE, f"At most so many messages, up to {MOST}.", default=DEFAULT),
        Field("time_before", types.DURATION, "Only messages that are not older."),
        Field("time_before_date", types.DATE, "Only messages since this date, instead of `time_before`."),
        Field("from_chat", types.TEXT, "Another chat in which the person has written to the bot."),
        Field("reverse", types.FLAG, "Whether the oldest comes first.", default=True),
    ),
    returns={
        "history_text": "one line for each message, `name: text` or `bot: text`",
        "messages": "the same as a list: `by`, `is_bot`, `text`, `date`, `message_id`",
        "messages_processed": "how many messages were found",
    },
    execute=execute,
)
