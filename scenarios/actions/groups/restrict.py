"""Mutes and unmutes a member of a group (C-71)."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from core.errors import Invalid
from core.model.clock import from_ms, to_ms
from scenarios.context import Context
from scenarios.context.arguments import duration_of, flag_of, text_of, whole_of, written_or_seen
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.placeholders.attributes import Prepared
from scenarios.schema import ActionType, Field, types
from scenarios.stores import step_results
from scenarios.telegram.calls import call, required_bot, required_group
from scenarios.telegram.membership import find_person

SHORTEST = timedelta(seconds=30)
"""Telegram takes a shorter restriction for one without end."""


PERMISSIONS = (
    "can_send_messages",
    "can_send_audios",
    "can_send_documents",
    "can_send_photos",
    "can_send_videos",
    "can_send_video_notes",
    "can_send_voice_notes",
    "can_send_polls",
    "can_send_other_messages",
    "can_add_web_page_previews",
    "can_react_to_messages",
    "can_edit_tag",
    "can_change_info",
    "can_invite_users",
    "can_pin_messages",
    "can_manage_topics",
)
"""Of a member. Source: core.telegram.org/bots/api#chatpermissions."""


async def execute(context: Context) -> Ending:
    """Restrict a member. A repeat ends the restriction at the same moment. Raises Refused."""
    context.require("manage")
    required_bot(context)
    chat, may_write = required_group(context), flag_of(context.prepared.seen, "can_send_messages")
    person, name = await _target(context)
    duration = None if may_write else restricted_for(context.prepared, context.step.action.fields)
    until = await _until(context, duration) if duration else None
    permissions = dict.fromkeys(PERMISSIONS, may_write)
    await call(context, "restrictChatMember", chat_id=chat, user_id=person, permissions=permissions, until_date=until)
    lasting = {"duration_seconds": int(duration.total_seconds())} if duration else {}
    return completed({"restrict_user_id": person, "restrict_username": name, **lasting})


async def _target(context: Context) -> tuple[int, str]:
    """Return the id of the person and how it is called."""
    person, name = named_in(context.prepared, context.step.action.fields)
    return await find_person(context, name) if person is None else person, name


def named_in(prepared: Prepared, written: Mapping[str, Any]) -> tuple[int | None, str]:
    """Return the id of the person, None if it has to be found, and its name. The id wins over the name, both over the
    person replied to. Raises Invalid.
    """
    given = written_or_seen(prepared, written, "restrict_user_id", "restrict_username")
    person, name = whole_of(given, "restrict_user_id"), text_of(given, "restrict_username")
    if person is not None or name:
        return person, name
    if (replied := whole_of(prepared.seen, "reply_user_id")) is None:
        raise Invalid("NOBODY_NAMED", "no person is named: there is no restrict_user_id, restrict_username or reply")
    return replied, text_of(prepared.seen, "reply_username")


def restricted_for(prepared: Prepared, written: Mapping[str, Any]) -> timedelta | None:
    """Return how long it lasts, at least 30 seconds; None: without end. Raises Invalid."""
    given = written_or_seen(prepared, written, "duration", "duration_seconds")
    duration = duration_of(given, "duration") or duration_of(given, "duration_seconds")
    return max(duration, SHORTEST) if duration else None


async def _until(context: Context, duration: timedelta) -> int:
    """Return the end of the restriction in seconds, the same one for each execution of this step."""
    end = from_ms(await step_results.remember(context, str(to_ms(datetime.now(UTC) + duration))))
    return round(end.timestamp())


ACTION = ActionType(
    name="restrict",
    needs=("telegram",),
    help="Forbids or allows a member of the group to write.",
    fields=(
        Field("can_send_messages", types.FLAG, "Whether the person may write.", default=False),
        Field("duration", types.DURATION, "How long it lasts, at least 30 s. Without it: until it is allowed again."),
        Field("duration_seconds", types.WHOLE, "The same in seconds."),
        Field("restrict_user_id", types.WHOLE, "The person's id. Without it: `restrict_username`."),
        Field("restrict_username", types.TEXT, "The person's @name. Without it: the person replied to."),
        Field("chat_id", types.TEXT, "The id or @name of the group, instead of that of the event."),
    ),
    returns={
        "restrict_user_id": "the person's id",
        "restrict_username": "the person's name",
        "duration_seconds": "how long it lasts",
    },
    execute=execute,
)
