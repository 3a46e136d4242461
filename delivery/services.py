"""The services that the API calls. `cli` opens them, one set per process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from core.admission.actions import ActionLog
from core.admission.api_keys import ApiKeys
from core.admission.idempotency import Idempotency
from core.directory.importing import Importing
from core.directory.linking import Linking
from core.services import Services
from core.sessions import Sessions, SignInCodes, SignInLinks
from core.updates.events import Events
from core.updates.ingress import Ingress
from core.uploads import Uploads
from core.webhooks.registry import Webhooks
from providers.sign_in import SignIn


class RunReader(Protocol):
    """Reads the runs of scenarios, which are beside this package: `scenarios.execution.reading`."""

    async def read(self, tenant: str, run: str) -> Any:
        """Return the run. Raises NotFound RUN_NOT_FOUND."""

    async def newest(
        self, tenant: str, person: str, cursor: str | None, limit: int
    ) -> tuple[Sequence[Any], str | None]:
        """A page of a person's runs, the newest first, and the cursor of the next page."""


@dataclass(frozen=True, slots=True)
class ApiServices:
    """What one process of the API uses: the services of core, and those that only the API has. They raise
    `core.errors`. `ingress`: what gateways post, by channel; `events`: by tenant, those that have a bot with scenarios;
    `sign_in`: None without ADA_SIGN_IN.
    """

    core: Services
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
    events: Mapping[str, Events] = field(default_factory=dict)
    runs: RunReader | None = None
    sign_in: SignIn | None = None
