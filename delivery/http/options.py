"""What an operator may set about the HTTP API; `cli` fills it from the settings."""

from dataclasses import dataclass
from datetime import timedelta

MiB = 2**20


@dataclass(frozen=True, slots=True)
class Options:
    """Limits and pace. Sizes in bytes."""

    most_recipients: int = 10_000
    furthest: int = 5 * 366  # days ahead that a delivery may be scheduled
    body_limit: int = MiB
    bulk_limit: int = 64 * MiB
    line_limit: int = MiB
    bulk_backlog: int = 64 * MiB  # answers of one bulk that may wait for a caller who does not take them yet
    heartbeat: timedelta = timedelta(seconds=15)  # between comments on a silent stream
    rate: float = 0.0  # requests per second and API key, counted by each process on its own; 0: unlimited
    burst: int = 100  # how many of them may come at once
    version: str = "0.1.0"
