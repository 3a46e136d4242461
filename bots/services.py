"""The services that the bots of one process share."""

from dataclasses import dataclass
from datetime import UTC, tzinfo

from core.directory.linking import Linking
from core.services import Services


@dataclass(frozen=True, slots=True)
class BotServices:
    """A bot belongs to one `tenant`; `timezone`: the tenant's, in which people read and write times. `public_url`:
    of the web console, "" if it is not known.
    """

    core: Services
    linking: Linking
    tenant: str = "default"
    timezone: tzinfo = UTC
    public_url: str = ""
