"""Limits of the HTTP API, and the secrets of what providers post to it. `cli` fills them from the settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, timedelta, tzinfo
from hmac import compare_digest

from core.errors import Forbidden, NotFound

MiB = 2**20


@dataclass(frozen=True, slots=True)
class Inbound:
    """By channel: the secret that proves the provider of a request; without it nothing is received from it."""

    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    confirmations: Mapping[str, str] = field(default_factory=dict)  # what a provider expects from the owner
    profiles: Mapping[str, str] = field(default_factory=dict)  # by which delivery reports are read
    mailbox: str = ""  # at which replies by mail are received


@dataclass(frozen=True, slots=True)
class Options:
    """Sizes are in bytes."""

    max_days_ahead: int = 5 * 366  # how far ahead a delivery may be scheduled
    body_limit: int = MiB
    body_timeout: timedelta = timedelta(seconds=30)  # for a body, and for each chunk of a bulk request
    bulk_limit: int = 64 * MiB
    import_limit: int = 32 * MiB  # a CSV file
    file_limit: int = 20 * MiB  # an uploaded file
    line_limit: int = MiB  # one line of a bulk request
    bulk_backlog: int = 64 * MiB  # bulk responses that may wait for a slow client
    heartbeat: timedelta = timedelta(seconds=15)  # between comments on a silent event stream
    rate: float = 0.0  # requests per second and API key, counted per process; 0: unlimited
    burst: int = 100  # requests of one API key that may come at once
    inbound: Inbound = Inbound()
    metrics_key: str = field(default="", repr=False)  # of Prometheus; without it only an operator reads the metrics
    proof_secret: str = field(default="", repr=False)  # by which clients on this machine recognise the server
    public_url: str = ""  # under which browsers reach this server, if not the address of the request
    timezone: tzinfo = UTC
    tenant_timezones: Mapping[str, tzinfo] = field(default_factory=dict)  # of tenants that have their own
    office: str = ""  # the group that gets what people write to no delivery and no bot
    bot_tenant: str = ""  # whose people write to the bots of the installation
    version: str = "0.1.0"

    def timezone_of(self, tenant: str) -> tzinfo:
        return self.tenant_timezones.get(tenant, self.timezone)


def check_secret(given: object, expected: str) -> None:
    """Check the secret of a provider. Raises NotFound INBOUND_NOT_SET_UP, Forbidden INBOUND_SECRET_WRONG."""
    if not expected:
        raise NotFound("INBOUND_NOT_SET_UP", "Nothing is received here: no secret is set for this provider.")
    text = given if isinstance(given, str) else ""
    if not compare_digest(text.encode(errors="replace"), expected.encode()):
        raise Forbidden("INBOUND_SECRET_WRONG", "The secret is wrong.")
