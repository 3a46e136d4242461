"""Permission of a person to run an action, on the server: roles (C-68) and administrators of the group (C-69).

The person must be known: in an event that was submitted with an API key, only a key with the scope admin may name it
(I21).

The roles of bot.yaml list Telegram ids. A person who writes elsewhere has those of its Telegram contacts in the
directory. The role that a person has in the directory counts, too, as a role of the bot with that name.
"""

from collections.abc import Mapping

from core.errors import Refused
from couriers.telegram_bot import CHANNELS_OF_IDS
from scenarios.bot.access import refusal
from scenarios.bot.data import Data
from scenarios.context import Context
from scenarios.schema import conversion
from scenarios.telegram.membership import is_group_admin
from scenarios.words import Text, sentence


async def denial(context: Context, fields: Mapping[str, Data]) -> Text:
    """Return why the event's person may not run an action with these fields; empty if it may."""
    needs_role = bool(fields.get("required_role") or fields.get("required_permission"))
    needs_group_admin = bool(conversion.flag(fields.get("group_admin"), "group_admin"))
    if not needs_role and not needs_group_admin:
        return ""
    if reason := context.missing_scope("admin"):
        return reason
    if needs_role:
        ids, role = await _identity(context)
        if error := refusal(context.bot.roles, fields, None, ids=ids, role=role):
            return error
    return await _group_denial(context) if needs_group_admin else ""


async def _identity(context: Context) -> tuple[set[str], str]:
    """Return the person's Telegram ids, and its role in the directory."""
    services, own = context.services, {context.person} if context.channel in CHANNELS_OF_IDS else set()
    user = await services.core.directory.users.by_contact(services.tenant, context.channel, context.person)
    if user is None:
        return own, ""
    known = {address for channel in CHANNELS_OF_IDS for address in user.contacts.get(channel, ())}
    return own | known, user.role or ""


async def _group_denial(context: Context) -> Text:
    try:
        return "" if await is_group_admin(context) else sentence("person_no_administrator_group")
    except Refused as error:
        return error.said
