"""The services that the API calls. `cli` opens them, one set per process."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from core.admission.actions import ActionLog
from core.admission.api_keys import ApiKeys
from core.admission.idempotency import Idempotency
from core.directory.importing import Importing
from core.directory.linking import Linking
from core.processes import InstallationMark
from core.services import Services
from core.sessions import PersonalKeys, Sessions, SignInCodes, SignInLinks
from core.updates.events import Events
from core.updates.ingress import Ingress
from core.uploads import Uploads
from core.webhooks.registry import Webhooks
from providers.sign_in import SignIn
from scenarios.inspection.bots import BotReader
from scenarios.inspection.runs import RunReader
from scenarios.stores.forms import Forms


class AccountStore(Protocol):
    """Stores the settings of accounts, encrypted."""

    async def change(self, channel: str, version: int, settings: Mapping[str, str], by: str) -> int:
        """Replace settings of a channel, the others stay; an empty text removes one. Returns the new version. Raises
        Conflict ACCOUNT_CHANGED if `version` is not the last one.
        """
        ...


@dataclass(frozen=True, slots=True)
class ApiServices:
    """The services of one API process: the services of core, and those that only the API has. They raise
    `core.errors`. `ingress`: what gateways post, by channel; `events`: those of a tenant's bot with scenarios,
    None if it has none; `sign_in`: None without ADA_SIGN_IN; `start_verb`: has the `./ada up` beside the API start a
    process again, such as `courier vk`.
    """

    core: Services
    mark: InstallationMark
    api_keys: ApiKeys
    idempotency: Idempotency
    sessions: Sessions
    actions: ActionLog
    sign_in_codes: SignInCodes
    sign_in_links: SignInLinks
    importing: Importing
    linking: Linking
    uploads: Uploads
    webhooks: Webhooks
    ingress: Mapping[str, Ingress]
    events: Callable[[str], Events | None] = lambda tenant: None
    runs: RunReader | None = None
    bots: BotReader | None = None
    forms: Forms | None = None
    sign_in: SignIn | None = None
    accounts: AccountStore | None = None
    start_verb: Callable[[str], Awaitable[None]] | None = None

    @property
    def personal_keys(self) -> PersonalKeys:
        return PersonalKeys(self.sessions)
