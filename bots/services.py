"""The services that the bots of one process share."""

from dataclasses import dataclass
from datetime import UTC, tzinfo

from core.directory.linking import Linking
from core.services import Services
from core.threads import UnquotedReplies


@dataclass(frozen=True, slots=True)
class BotServices:
    """A bot belongs to one `tenant`; `timezone`: the tenant's, in which people read and write times. `public_url`:
    of the web console, "" if it is not known. `office`: the group that gets what belongs to no delivery, "" for none.
    """

    core: Services
    linking: Linking
    tenant: str = "default"
    timezone: tzinfo = UTC
    public_url: str = ""
    office: str = ""

    @property
    def replies(self) -> UnquotedReplies:
        """Return what takes the words of people to which the dialog has no answer."""
        core = self.core
        return UnquotedReplies(core.store, core.client, core.directory, self.tenant, self.office)
