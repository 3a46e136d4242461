"""Finds the tenants whose office (ADA_OFFICE) has no reader, for doctor and for the log when the HTTP API starts."""

import logging

from cli.settings.bot_folders import tenants_of_bots
from cli.settings.settings import Settings
from core.directory import Directory
from core.directory.offices import OfficeState, state_of_office

log = logging.getLogger(__name__)

_LOSS = "nobody gets what people write to no delivery and no bot"


def unread_office(group: str, tenant: str, state: OfficeState) -> str:
    """Return why an office has no reader, and what is lost."""
    why = {
        OfficeState.NO_GROUP: f"there is no group {group!r} in the tenant {tenant!r}",
        OfficeState.NO_MEMBERS: f"the group {group!r} has no members",
        OfficeState.NO_READERS: f"no member of the group {group!r} is trainer, staff or admin",
    }
    return f"{why[state]}: {_LOSS}"


async def log_unread_offices(directory: Directory, settings: Settings) -> None:
    """Log a warning for each tenant with a bot whose office has no reader. Raises StoreError."""
    for tenant in tenants_of_bots(settings) if settings.office else ():
        state = await state_of_office(directory, tenant, settings.office or "")
        is_needed = tenant == settings.bot_tenant or state is not OfficeState.NO_GROUP
        if state is not OfficeState.READ and is_needed:
            log.warning("ADA_OFFICE: %s", unread_office(settings.office or "", tenant, state))
