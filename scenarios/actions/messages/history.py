"""Reads what was said in the chat before."""

from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Annotated

from core.updates.events import person_of
from scenarios.bot.data import Data
from scenarios.context import Context, Said
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.rehearsal import NUMBER, RehearsedStep
from scenarios.schema import ActionType, Attributes, Own
from scenarios.schema.attributes import Count, Duration, Flag, Moment, Text

DEFAULT, MOST = 20, 100


class HistoryAttributes(Attributes, frozen=True):
    limit: Annotated[Count, Own(f"At most so many messages, up to {MOST}.", default=DEFAULT)] = None
    time_before: Annotated[Duration, Own("Only messages that are not older.")] = None
    time_before_date: Annotated[Moment, Own("Only messages since this date, instead of `time_before`.")] = None
    from_chat: Annotated[Text, Own("Another chat in which the person has written to the bot.")] = ""
    reverse: Annotated[Flag, Own("Whether the oldest comes first.")] = True

    def since(self, now: datetime) -> datetime | None:
        return self.time_before_date or (now - self.time_before if self.time_before else None)


async def execute(context: Context, written: HistoryAttributes) -> Ending:
    """Return the last messages. Later actions escape them, as a person has written them. Raises Refused."""
    said = await context.services.conversations.last(
        person_of(context.event),
        written.from_chat or context.chat,
        limit=min(written.limit or DEFAULT, MOST),
        since=written.since(context.services.now()),
        without=context.run,
    )
    return _read(said if written.reverse else said[::-1], context.services.timezone)


def rehearse(step: RehearsedStep, written: HistoryAttributes) -> Ending:
    """The person has written once."""
    by = str(step.event.get("first_name") or "") or step.person
    return _read([Said(by, "[text]", step.now, NUMBER)], step.zone)


def _read(said: Sequence[Said], zone: tzinfo) -> Ending:
    results: dict[str, Data] = {
        "history_text": "\n".join(f"{one.by}: {one.text}" for one in said),
        "messages": [_shown(one, zone) for one in said],
        "messages_processed": len(said),
    }
    return completed(results, from_person=["history_text", "messages"])


def _shown(said: Said, zone: tzinfo) -> dict[str, Data]:
    at = said.at.astimezone(zone).isoformat(timespec="seconds")
    return {"by": said.by, "is_bot": said.is_bot, "text": said.text, "date": at, "message_id": said.message_id}


ACTION = ActionType(
    name="history",
    help="Reads what the person wrote to the bot in this chat and what the bot answered, without this event. Only what"
    " started a scenario is stored; Telegram shows a bot no older messages, and none of other people.",
    attributes=HistoryAttributes,
    returns={
        "history_text": "one line for each message, `name: text` or `bot: text`",
        "messages": "the same as a list: `by`, `is_bot`, `text`, `date`, `message_id`",
        "messages_processed": "how many messages were found",
    },
    execute=execute,
    rehearse=rehearse,
)
