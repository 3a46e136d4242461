"""Passes on what the person has written to the one who wrote to it last: the way of replies without a quote (C-115)."""

from core.threads import UnquotedReplies
from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.results import completed, skipped
from scenarios.rehearsal import RehearsedStep
from scenarios.schema import ActionType, Attributes
from scenarios.words import sentence

_NO_REPLY = skipped(sentence("no_one_to_pass_on_to"))
_FIELDS = (
    *("id", "channel", "source", "kind", "user_id", "chat_id", "chat_type", "message_id", "event_text", "event_date"),
    *("attachments", "is_forward", "forward_text", "forward_files"),
    *("first_name", "last_name", "username", "language_code"),
)


class PassOnAttributes(Attributes, frozen=True):
    pass


async def execute(context: Context, written: PassOnAttributes) -> Ending:
    """Pass the event on once, however often it is executed. Raises StoreError."""
    services = context.services
    core = services.core
    replies = UnquotedReplies(core.store, core.client, core.directory, services.tenant, services.office)
    event = {name: context.event[name] for name in _FIELDS if name in context.event}
    return completed() if await replies.take(event) else _NO_REPLY


def rehearse(step: RehearsedStep, written: PassOnAttributes) -> Ending:
    """Nobody has written to a rehearsed person."""
    return _NO_REPLY


ACTION = ActionType(
    name="pass_on",
    help="Passes on what the person has written, as a reply without a quote: to the sender of the newest message of the"
    " last seven days, otherwise to the office of ADA_OFFICE. Ends as `drop` if there is neither; then the bot can"
    " answer.",
    attributes=PassOnAttributes,
    outcomes=("completed", "drop"),
    execute=execute,
    rehearse=rehearse,
)
