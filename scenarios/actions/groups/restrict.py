"""Mutes and unmutes a member of a group (C-71)."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from core.errors import Invalid
from core.model.clock import from_ms, to_ms
from couriers.telegram_bot import BOT_API
from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.rehearsal import NUMBER, RehearsedStep
from scenarios.schema import ActionType, Attributes, Seen, conversion, types
from scenarios.schema.attributes import Duration, Flag, Text, Whole
from scenarios.stores import step_results
from scenarios.telegram.authorisation import find_person
from scenarios.telegram.calls import call, required_bot, required_group
from scenarios.words import sentence

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


_PERSON = ("restrict_user_id", "restrict_username")
_LASTING = ("duration", "duration_seconds")
"""Fields that an earlier `restrict` may have returned: each pair is read in one place."""


class RestrictAttributes(Attributes, frozen=True):
    """`reply_user_id`, `reply_username`: the person replied to."""

    can_send_messages: Annotated[Flag, Seen("Whether the person may write.")] = False
    duration: Annotated[
        Duration,
        Seen("How long it lasts, at least 30 s. Without it: until it is allowed again.", together=_LASTING),
    ] = None
    duration_seconds: Annotated[
        timedelta | None, types.WHOLE, conversion.duration, Seen("The same in seconds.", together=_LASTING)
    ] = None
    restrict_user_id: Annotated[Whole, Seen("The person's id. Without it: `restrict_username`.", together=_PERSON)] = (
        None
    )
    restrict_username: Annotated[
        Text, Seen("The person's @name. Without it: the person replied to.", together=_PERSON)
    ] = ""
    chat_id: Annotated[Text, Seen("The id or @name of the group, instead of that of the event.")] = ""
    reply_user_id: Annotated[Whole, Seen()] = None
    reply_username: Annotated[Text, Seen()] = ""

    @property
    def person(self) -> tuple[int | None, str]:
        """The id of the person, None if it has to be found, and its name. The id wins over the name, both over the
        person replied to. Raises Invalid.
        """
        if self.restrict_user_id is not None or self.restrict_username:
            return self.restrict_user_id, self.restrict_username
        if self.reply_user_id is None:
            detail = sentence("no_person_named_no")
            raise Invalid("NOBODY_NAMED", detail)
        return self.reply_user_id, self.reply_username

    @property
    def lasts(self) -> timedelta | None:
        """Duration of the restriction, at least 30 seconds; None: without end."""
        duration = None if self.can_send_messages else self.duration or self.duration_seconds
        return max(duration, SHORTEST) if duration else None


async def execute(context: Context, written: RestrictAttributes) -> Ending:
    """Restrict a member. A repeat ends the restriction at the same moment. Raises Refused."""
    context.require("manage")
    required_bot(context)
    chat, (known, name) = required_group(context, written.chat_id), written.person
    person = await find_person(context, name) if known is None else known
    until = await _until(context, written.lasts) if written.lasts else None
    permissions = dict.fromkeys(PERMISSIONS, written.can_send_messages)
    await call(context, "restrictChatMember", chat_id=chat, user_id=person, permissions=permissions, until_date=until)
    return _restricted(written, person, name)


def rehearse(step: RehearsedStep, written: RestrictAttributes) -> Ending:
    person, name = written.person
    return _restricted(written, NUMBER if person is None else person, name)


def _restricted(written: RestrictAttributes, person: int, name: str) -> Ending:
    lasting = {"duration_seconds": int(written.lasts.total_seconds())} if written.lasts else {}
    return completed({"restrict_user_id": person, "restrict_username": name, **lasting})


async def _until(context: Context, duration: timedelta) -> int:
    """Return the end of the restriction in seconds, the same one for each execution of this step."""
    end = from_ms(await step_results.remember(context, str(to_ms(datetime.now(UTC) + duration))))
    return round(end.timestamp())


ACTION = ActionType(
    name="restrict",
    needs=(BOT_API,),
    help="Forbids or allows a member of the group to write.",
    attributes=RestrictAttributes,
    returns={
        "restrict_user_id": "the person's id",
        "restrict_username": "the person's name",
        "duration_seconds": "how long it lasts",
    },
    execute=execute,
    rehearse=rehearse,
)
