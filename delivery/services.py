"""The services of core that the API calls. `cli` creates them, one set per process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from core.admission.api_keys import ApiKeys
from core.admission.idempotency import Idempotency
from core.deliveries.channels import Channels
from core.deliveries.deliveries import Deliveries
from core.deliveries.tracker import Tracker
from core.directory import Directory
from core.directory.importing import Importing
from core.directory.linking import Linking
from core.jobs import Jobs
from core.orders import Sending
from core.queue import Queue
from core.redis.store import Store
from core.updates.events import Events
from core.updates.ingress import Ingress
from core.webhooks.registry import Webhooks
from providers.sign_in import SignIn


class RunReader(Protocol):
    """Reads the runs of scenarios, which are beside this package: `scenarios.execution.reading`."""

    async def read(self, tenant: str, run: str) -> Any:
        """The run. Raises NotFound RUN_NOT_FOUND."""

    async def newest(
        self, tenant: str, person: str, cursor: str | None, limit: int
    ) -> tuple[Sequence[Any], str | None]:
        """A page of a person's runs, the newest first, and the cursor of the next page."""


@dataclass(frozen=True, slots=True)
class Services:
    """All services of one process. Their methods raise `core.errors`."""

    deliveries: Deliveries
    sending: Sending
    tracker: Tracker
    api_keys: ApiKeys
    idempotency: Idempotency
    queue: Queue
    channels: Channels
    directory: Directory
    importing: Importing
    linking: Linking
    store: Store
    webhooks: Webhooks
    jobs: Jobs
    ingress: Mapping[str, Ingress]  # by channel: what gateways post
    events: Mapping[str, Events] = field(default_factory=dict)  # by tenant: those that have a bot with scenarios
    runs: RunReader | None = None
    sign_in: SignIn | None = None
