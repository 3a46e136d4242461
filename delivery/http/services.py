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
from core.sessions import OutsideAccounts, PersonalKeys, Sessions, SignInCodes, SignInLinks
from core.sessions.outside_accounts import EndedLogin, OutsideAccount
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


class ProviderSignIn(Protocol):
    """Signs people in at identity providers; `providers.oidc.sign_in`, whose library is imported only if it is set up.
    `titles`: by the names of the providers.
    """

    @property
    def is_secure(self) -> bool: ...

    @property
    def titles(self) -> Mapping[str, str]: ...

    async def begin(self, name: str, browser: str) -> str: ...

    async def finish(self, name: str, query: str, browser: str) -> OutsideAccount: ...

    async def read_logout(self, name: str, token: str) -> EndedLogin: ...

    async def sign_out_address(self, name: str) -> str: ...


@dataclass(frozen=True, slots=True)
class ApiServices:
    """The services of one API process: the services of core, and those that only the API has. They raise
    `core.errors`. `ingress`: what gateways post, by channel; `events`: those of a tenant's bot with scenarios,
    None if it has none; `sign_in`: None without ADA_SIGN_IN; `identity_providers`: None without ADA_OIDC; `start_verb`:
    has the `./ada up` beside the API start a process again, such as `courier vk`.
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
    identity_providers: ProviderSignIn | None = None
    accounts: AccountStore | None = None
    start_verb: Callable[[str], Awaitable[None]] | None = None

    @property
    def outside_accounts(self) -> OutsideAccounts:
        return OutsideAccounts(self.core.store, self.core.directory, self.sessions)

    @property
    def personal_keys(self) -> PersonalKeys:
        return PersonalKeys(self.sessions)
