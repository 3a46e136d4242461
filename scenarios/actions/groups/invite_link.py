"""Makes and revokes invite links of a group (C-70)."""

import re
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Annotated

from couriers.telegram_bot import BOT_API
from scenarios.context import Context
from scenarios.engine import Ending, State, Values
from scenarios.engine.results import completed, failed
from scenarios.rehearsal import RehearsedStep
from scenarios.schema import ActionType, Attributes, Seen
from scenarios.schema.attributes import Duration, Flag, Text, Whole
from scenarios.stores import step_results
from scenarios.telegram.calls import TelegramRefused, call, required_bot, required_group
from scenarios.words import Sentence, sentence, together

_LINK = re.compile(r"(?:https?://)?(?:t|telegram)\.me/((?:\+|joinchat/)[\w-]+)")
_MOST_REVOKED = 50
_SHORTEST = timedelta(seconds=1)
_NO_LINK = failed(sentence("no_invite_link_text"))


class InviteLinkAttributes(Attributes, frozen=True):
    """`event_text`: that of the event, in which the links to revoke are."""

    member_limit: Annotated[Whole, Seen("How many people may join by it.")] = None
    expire: Annotated[Duration, Seen("How long it is valid.")] = None
    requires_approval: Annotated[Flag, Seen("Whether an administrator approves each person.")] = False
    cleanup: Annotated[Flag, Seen("Whether the links in the event's text are revoked instead.")] = False
    chat_id: Annotated[Text, Seen("The id or @name of the group, instead of that of the event.")] = ""
    event_text: Annotated[Text, Seen()] = ""


async def execute(context: Context, written: InviteLinkAttributes) -> Ending:
    """Make an invite link, or clean up. Raises Refused."""
    context.require("manage")
    if written.cleanup:
        return await _cleanup(context, written)
    known = await step_results.recall(context)
    return completed({"invite_link": known or await step_results.remember(context, await _create(context, written))})


def rehearse(step: RehearsedStep, written: InviteLinkAttributes) -> Ending:
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
        expire_date=None if expires is None else round((datetime.now(UTC) + max(expires, _SHORTEST)).timestamp()),
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


ACTION = ActionType(
    name="invite_link",
    needs=(BOT_API,),
    help="Makes an invite link of the group, or revokes links.",
    attributes=InviteLinkAttributes,
    returns={
        "invite_link": "the new link",
        "invite_links_deleted": "the links that were revoked",
        "invite_links_failed": "the links that could not be revoked",
    },
    execute=execute,
    rehearse=rehearse,
    samples={"invite_link": "https://t.me/+sample"},
)
