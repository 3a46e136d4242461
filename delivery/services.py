"""The services that the API calls. `cli` opens them, one set per process."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from core.admission.actions import ActionLog
from core.admission.api_keys import ApiKeys
from core.admission.idempotency import Idempotency
from core.directory.importing import Importing
from core.directory.linking import Linking
from core.processes import InstallationMark
from core.services import Services
from core.sessions import Sessions, SignInCodes, SignInLinks
from core.updates.events import Events
from core.updates.ingress import Ingress
from core.uploads import Uploads
from core.webhooks.registry import Webhooks
from providers.sign_in import SignIn


class RunReader(Protocol):
    """The runs of scenarios, which are beside this package: `scenarios.inspection.runs`."""

    async def read(self, tenant: str, run: str) -> Any:
        """Return the run. Raises NotFound RUN_NOT_FOUND."""

    def filter(self, person: str, scenario: str, state: str, since: datetime | None, until: datetime | None) -> Any:
        """Return what `page` lists; "" and None: everything."""

    async def page(self, tenant: str, wanted: Any, cursor: str | None, limit: int) -> tuple[Sequence[Any], str | None]:
        """Return a page of runs, the newest first, and the cursor of the next page."""

    async def drop(self, tenant: str, run: str) -> Any:
        """End a run and return it. Raises NotFound RUN_NOT_FOUND, Conflict RUN_OVER."""

    async def drive_on(self, tenant: str, run: str) -> Any:
        """Have a run driven on and return it. Raises NotFound RUN_NOT_FOUND, Conflict RUN_OVER, RUN_WITHOUT_TASK."""


class FormReader(Protocol):
    """The answers to forms: `scenarios.stores.forms`."""

    async def names(self, tenant: str) -> Sequence[str]:
        """Return the forms with answers."""

    async def table(self, tenant: str, form: str, cursor: str, limit: int) -> Any:
        """Return a page of a form."""

    async def of_person(self, tenant: str, person: str) -> Mapping[str, Any]:
        """Return the variables and answers of a person."""


class BotReader(Protocol):
    """The bot in force of a tenant: `scenarios.inspection.bots`. Each but `list` raises NotFound BOT_NOT_LOADED."""

    async def show(self, tenant: str) -> Any:
        """Return the bot."""

    async def list(self, tenant: str | None) -> Any:
        """Return the bot of a tenant, or of all with None, with what has stopped of it."""

    async def graph(self, tenant: str, name: str, version: str = "") -> Any:
        """Return a scenario as a graph. Raises NotFound SCENARIO_NOT_FOUND."""

    async def dry_run(
        self, tenant: str, event: Mapping[str, Any], fail: Collection[str], unclear: Collection[str]
    ) -> Any:
        """Return what the bot would do with an event. Raises Invalid EVENT_…."""


@dataclass(frozen=True, slots=True)
class ApiServices:
    """The services of one API process: the services of core, and those that only the API has. They raise
    `core.errors`. `ingress`: what gateways post, by channel; `events`: those of a tenant's bot with scenarios,
    None if it has none; `sign_in`: None without ADA_SIGN_IN.
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
    forms: FormReader | None = None
    sign_in: SignIn | None = None
