"""Makes and revokes invite links of a group (C-70)."""

import re
from datetime import UTC, datetime, timedelta
from hashlib import blake2b

from scenarios.context import Context
from scenarios.context.arguments import duration_of, flag_of, text_of, whole_of
from scenarios.engine import Ending, State, Values
from scenarios.engine.results import completed, failed
from scenarios.schema import ActionType, Field, types
from scenarios.stores import step_results
from scenarios.telegram.calls import TelegramRefused, call, required_bot, required_group

_LINK = re.compile(r"(?:https?://)?(?:t|telegram)\.me/((?:\+|joinchat/)[\w-]+)")
_MOST_REVOKED = 50
_SHORTEST = timedelta(seconds=1)


async def execute(context: Context) -> Ending:
    """Make an invite link, or clean up. Raises Refused."""
    context.require("manage")
    if flag_of(context.prepared.seen, "cleanup"):
        return await _cleanup(context)
    known = await step_results.recall(context)
    return completed({"invite_link": known or await step_results.remember(context, await _create(context))})


async def _create(context: Context) -> str:
    """Return a new link. Its name shows the step, so that people who administer the group can see where it comes
    from."""
    required_bot(context)
    seen, chat = context.prepared.seen, required_group(context)
    expires, needs_approval = duration_of(seen, "expire"), flag_of(seen, "requires_approval")
    link = await call(
        context,
        "createChatInviteLink",
        chat_id=chat,
        name=f"ada {blake2b(context.identity.encode(), digest_size=8).hexdigest()}",
        expire_date=None if expires is None else round((datetime.now(UTC) + max(expires, _SHORTEST)).timestamp()),
        member_limit=whole_of(seen, "member_limit"),
        creates_join_request=needs_approval or None,
    )
    return str(link["invite_link"])


async def _cleanup(context: Context) -> Ending:
    """Revoke the links in the event's text. It fails if there is none, or none could be revoked."""
    required_bot(context)
    links = links_in(text_of(context.prepared.seen, "event_text"))
    if not links:
        return failed("there is no invite link in the text")
    errors = {link: error for link in links if (error := await _revoke(context, link))}
    deleted = [link for link in links if link not in errors]
    results = Values({"invite_links_deleted": deleted, "invite_links_failed": list(errors)})
    return Ending(State.COMPLETED if deleted else State.FAILED, results, "; ".join(sorted(set(errors.values()))))


def links_in(text: str) -> list[str]:
    """Return the invite links of a text, each once."""
    return [f"https://t.me/{path}" for path in dict.fromkeys(_LINK.findall(text))][:_MOST_REVOKED]


async def _revoke(context: Context, link: str) -> str:
    """Return why a link could not be revoked; empty if it is revoked."""
    chat = required_group(context)
    try:
        await call(context, "revokeChatInviteLink", chat_id=chat, invite_link=link)
    except TelegramRefused as error:
        return str(error)
    return ""


ACTION = ActionType(
    name="invite_link",
    needs=("telegram",),
    help="Makes an invite link of the group, or revokes links.",
    fields=(
        Field("member_limit", types.WHOLE, "How many people may join by it."),
        Field("expire", types.DURATION, "How long it is valid."),
        Field("requires_approval", types.FLAG, "Whether an administrator approves each person."),
        Field("cleanup", types.FLAG, "Whether the links in the event's text are revoked instead.", default=False),
        Field("chat_id", types.TEXT, "The id or @name of the group, instead of that of the event."),
    ),
    returns={
        "invite_link": "the new link",
        "invite_links_deleted": "the links that were revoked",
        "invite_links_failed": "the links that could not be revoked",
    },
    execute=execute,
)
