"""The keyboard that a bot gives to all people, by version (U-18).

The next message to a person in private that has no buttons of its own, and edits nothing, brings the keyboard, and the
person's record remembers its version: after a change of the version the same happens once more. People with a role of
`keyboard_of_role` have the keyboard of the first such role.
"""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from core.model.content import Content
from scenarios.context import Context
from scenarios.context.arguments import text_of
from scenarios.engine.triggers import chat_kind
from scenarios.sending.keyboards import contact_labels, reply_rows
from scenarios.stores.people import People
from scenarios.telegram.authorisation import denial


async def with_keyboard(context: Context, content: Content) -> tuple[Content, str]:
    """Return the content, with the keyboard if the person lacks it; and its version, to be remembered, or ""."""
    own = context.prepared.own
    if not own.get("keyboard") or not _takes_keyboard(context, content):
        return content, ""
    role, rows = await _keyboard(context, own)
    version = f"{text_of(own, 'keyboard_version') or '1'} {role}".strip()
    if await _people(context).keyboard(context.channel, context.person) == version:
        return content, ""
    labels = tuple(tuple(row) for row in reply_rows(rows))
    return replace(content, reply=labels, request_contact=contact_labels(rows)), version


async def remember(context: Context, version: str) -> None:
    """Write that a message with this version was ordered."""
    if version:
        await _people(context).set_keyboard(context.channel, context.person, version)


def _takes_keyboard(context: Context, content: Content) -> bool:
    has_buttons = bool(content.inline) or content.reply is not None
    is_later = any(context.prepared.own.get(name) for name in ("to", "delay", "deliver_at"))
    return not has_buttons and not content.edit and not is_later and chat_kind(context.event) == "private"


async def _keyboard(context: Context, own: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the role that decides, "" for none, and its rows."""
    of_role = own.get("keyboard_of_role")
    for role, rows in of_role.items() if isinstance(of_role, Mapping) else ():
        if not await denial(context, {"required_role": role}):
            return str(role), rows
    return "", own["keyboard"]


def _people(context: Context) -> People:
    return People(context.services.core.store, context.services.tenant)
