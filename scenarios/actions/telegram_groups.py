"""Actions on the members of a Telegram group: requests to join, invite links, restrictions (C-70, C-71)."""

import re
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Annotated

from core.errors import Invalid
from core.model.clock import from_ms, to_ms
from couriers.telegram_bot import BOT_API
from scenarios.context import Context
from scenarios.engine import Ending, State, Values, completed, failed
from scenarios.rehearsal import NUMBER, RehearsedStep
from scenarios.schema import ActionType, Attributes, Seen, conversion, types
from scenarios.schema.attributes import Duration, Flag, Text, Whole
from scenarios.stores import step_results
from scenarios.telegram import TelegramRefused, call, find_person, required_bot, required_group
from scenarios.words import Sentence, sentence, together

_DONE = ("USER_ALREADY_PARTICIPANT", "HIDE_REQUESTER_MISSING")
"""The errors of Telegram for a request that was answered before."""


class AnswerJoinAttributes(Attributes, frozen=True):
    approve: Annotated[Flag, Seen("Whether the person may join.")] = True
    user_id: Annotated[Whole, Seen("The person, instead of that of the event.")] = None
    chat_id: Annotated[Text, Seen("The id or @name of the group, instead of that of the event.")] = ""


async def execute_answer_join(context: Context, written: AnswerJoinAttributes) -> Ending:
    """Answer a request to join. A request that was answered before counts as answered. Raises Refused."""
    context.require("manage")
    required_bot(context)
    chat = required_group(context, written.chat_id)
    if written.user_id is None:
        raise Invalid("FIELD_INVALID", sentence("user_id_missing_who_asks"), "user_id")
    method = "approveChatJoinRequest" if written.approve else "declineChatJoinRequest"
    try:
        await call(context, method, chat_id=chat, user_id=written.user_id)
    except TelegramRefused as error:
        if not any(text in error.detail for text in _DONE):
            raise
    return completed()


ANSWER_JOIN = ActionType(
    name="answer_join",
    needs=(BOT_API,),
    help="Approves or declines a person's request to join the group (an event `join_request`).",
    attributes=AnswerJoinAttributes,
    execute=execute_answer_join,
)


_LINK = re.compile(r"(?:https?://)?(?:t|telegram)\.me/((?:\+|joinchat/)[\w-]+)")
_MOST_REVOKED = 50
_SHORTEST_LINK = timedelta(seconds=1)
_NO_LINK = failed("NO_INVITE_LINK", sentence("no_invite_link_text"))


class InviteLinkAttributes(Attributes, frozen=True):
    """`event_text`: that of the event, in which the links to revoke are."""

    member_limit: Annotated[Whole, Seen("How many people may join by it.")] = None
    expire: Annotated[Duration, Seen("How long it is valid.")] = None
    requires_approval: Annotated[Flag, Seen("Whether an administrator approves each person.")] = False
    cleanup: Annotated[Flag, Seen("Whether the links in the event's text are revoked instead.")] = False
    chat_id: Annotated[Text, Seen("The id or @name of the group, instead of that of the event.")] = ""
    event_text: Annotated[Text, Seen()] = ""


async def execute_invite_link(context: Context, written: InviteLinkAttributes) -> Ending:
    """Make an invite link, or clean up. Raises Refused."""
    context.require("manage")
    if written.cleanup:
        return await _cleanup(context, written)
    known = await step_results.recall(context)
    return completed({"invite_link": known or await step_results.remember(context, await _create(context, written))})


def rehearse_invite_link(step: RehearsedStep, written: InviteLinkAttributes) -> Ending:
    if not written.cleanup:
        return completed(step.echo(["invite_link"]))
    links = links_in(written.event_text)
    return completed({"invite_links_deleted": links, "invite_links_failed": []}) if links else _NO_LINK


async def _create(context: Context, written: InviteLinkAttributes) -> str:
    """Return a new link. Its name shows the step, so that people who administer the group can see where it comes
    from."""
    required_bot(context)
    expires = written.expire
    link = await call(
        context,
        "createChatInviteLink",
        chat_id=required_group(context, written.chat_id),
        name=f"ada {blake2b(context.identity.encode(), digest_size=8).hexdigest()}",
        expire_date=None if expires is None else round((datetime.now(UTC) + max(expires, _SHORTEST_LINK)).timestamp()),
        member_limit=written.member_limit,
        creates_join_request=written.requires_approval or None,
    )
    return str(link["invite_link"])


async def _cleanup(context: Context, written: InviteLinkAttributes) -> Ending:
    """Revoke the links in the event's text. It fails if there is none, or none could be revoked."""
    required_bot(context)
    links = links_in(written.event_text)
    if not links:
        return _NO_LINK
    chat = required_group(context, written.chat_id)
    errors = {link: error for link in links if (error := await _revoke(context, chat, link))}
    deleted = [link for link in links if link not in errors]
    results = Values({"invite_links_deleted": deleted, "invite_links_failed": list(errors)})
    return Ending(
        State.COMPLETED if deleted else State.FAILED, results, together(sorted(set(errors.values()), key=str))
    )


def links_in(text: str) -> list[str]:
    """Return the invite links of a text, each once."""
    return [f"https://t.me/{path}" for path in dict.fromkeys(_LINK.findall(text))][:_MOST_REVOKED]


async def _revoke(context: Context, chat: int | str, link: str) -> str | Sentence:
    """Return why a link could not be revoked; empty if it is revoked."""
    try:
        await call(context, "revokeChatInviteLink", chat_id=chat, invite_link=link)
    except TelegramRefused as error:
        return error.said
    return ""


INVITE_LINK = ActionType(
    name="invite_link",
    needs=(BOT_API,),
    help="Makes an invite link of the group, or revokes links.",
    attributes=InviteLinkAttributes,
    returns={
        "invite_link": "the new link",
        "invite_links_deleted": "the links that were revoked",
        "invite_links_failed": "the links that could not be revoked",
    },
    execute=execute_invite_link,
    rehearse=rehearse_invite_link,
    samples={"invite_link": "https://t.me/+sample"},
)


SHORTEST_RESTRICTION = timedelta(seconds=30)
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
        return max(duration, SHORTEST_RESTRICTION) if duration else None


async def execute_restrict(context: Context, written: RestrictAttributes) -> Ending:
    """Restrict a member. A repeat ends the restriction at the same moment. Raises Refused."""
    context.require("manage")
    required_bot(context)
    chat, (known, name) = required_group(context, written.chat_id), written.person
    person = await find_person(context, name) if known is None else known
    until = await _until(context, written.lasts) if written.lasts else None
    permissions = dict.fromkeys(PERMISSIONS, written.can_send_messages)
    await call(context, "restrictChatMember", chat_id=chat, user_id=person, permissions=permissions, until_date=until)
    return _restricted(written, person, name)


def rehearse_restrict(step: RehearsedStep, written: RestrictAttributes) -> Ending:
    person, name = written.person
    return _restricted(written, NUMBER if person is None else person, name)


def _restricted(written: RestrictAttributes, person: int, name: str) -> Ending:
    lasting = {"duration_seconds": int(written.lasts.total_seconds())} if written.lasts else {}
    return completed({"restrict_user_id": person, "restrict_username": name, **lasting})


async def _until(context: Context, duration: timedelta) -> int:
    """Return the end of the restriction in seconds, the same one for each execution of this step."""
    end = from_ms(await step_results.remember(context, str(to_ms(datetime.now(UTC) + duration))))
    return round(end.timestamp())


RESTRICT = ActionType(
    name="restrict",
    needs=(BOT_API,),
    help="Forbids or allows a member of the group to write.",
    attributes=RestrictAttributes,
    returns={
        "restrict_user_id": "the person's id",
        "restrict_username": "the person's name",
        "duration_seconds": "how long it lasts",
    },
    execute=execute_restrict,
    rehearse=rehearse_restrict,
)
