"""Sends what an action says to the person beside its result: a question, a hint, a reminder."""

from collections.abc import Mapping
from typing import Any

from core.model.delivery import Repeat
from core.model.history_key import HistoryKey
from scenarios.context import Context
from scenarios.sending import orders
from scenarios.sending.attachments import resolve
from scenarios.sending.content import content_of
from scenarios.sending.message import message


async def say(
    context: Context, seen: Mapping[str, Any], name: str, press: Mapping[str, Any] | None = None
) -> HistoryKey | None:
    """Order a message to the chat of the event, once for each step and name; return its delivery, None if there is
    nothing to say. It edits the message whose button was pressed now, and never that of the run's event, which may be
    long ago. Raises Refused.
    """
    files = resolve(seen.get("attachment"), context.folders)
    for warning in files.warnings:
        context.warn(warning)
    if (said := message({**seen, "attachment": files.attachments or None})) is None:
        return None
    content = content_of(said, files.attachments, press or {}, same_chat=press is not None)
    order, caller = orders.to_person(context, said["text"], content, context.chat)
    identity = f"{context.identity}:{name}" if name else context.identity
    repeat = Repeat(identity, "scenario", is_own=True)
    return (await context.services.core.sending.send(order, caller, repeat)).key
