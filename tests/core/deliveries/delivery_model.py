"""A model of deliveries: outcomes by the ranks of `core.model.states`, and claimed parcels."""

from dataclasses import dataclass, field

from core.deliveries.histories.parcels import Entry
from core.model.history_key import HistoryKey
from core.model.states import OPEN, RANK, Status
from core.queue import Task


def supersedes(new: Status, old: Status) -> bool:
    """Whether `new` replaces `old`: by its rank, or as a step back to an attempt that was postponed."""
    return RANK[new] > RANK[old] or (old is Status.SENDING and new is Status.QUEUED)


@dataclass
class Delivery:
    """By (recipient, channel): `written`, the outcome of an entry, and `since`, the parcel that has the entry after a
    retry. `stopped`: entries that must not be attempted any more. `lost`: open entries whose worker was lost, which may
    have sent them.
    """

    key: HistoryKey
    people: list[list[str]]
    due: int | None
    written: dict[tuple[str, str], Status] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)
    cancelled: bool = False
    since: dict[tuple[str, str], int] = field(default_factory=dict)
    lost: set[tuple[str, str]] = field(default_factory=set)

    def is_open(self, recipient: str, channel: str, parcel: int) -> bool:
        """Whether this parcel has to attempt the entry."""
        name = recipient, channel
        return self.written.get(name, Status.QUEUED) in OPEN and parcel >= self.since.get(name, 0)

    def write(self, recipient: str, channel: str, status: Status) -> None:
        old = self.written.get((recipient, channel), Status.QUEUED)
        if supersedes(status, old):
            self.written[recipient, channel] = status

    def stop(self, recipient: str, channel: str, status: Status) -> None:
        """The entry is not attempted any more. It is `unknown` if it may have been sent (D-38)."""
        name = recipient, channel
        may_be_sent = self.written.get(name) is Status.SENDING or name in self.lost
        self.write(recipient, channel, Status.UNKNOWN if may_be_sent else status)

    def end_lost(self, names: set[tuple[str, str]]) -> None:
        """These entries are not attempted again; they are unknown if they may have been sent."""
        for name in names & self.lost:
            self.write(*name, Status.UNKNOWN)


@dataclass
class ClaimedParcel:
    """`entries`: those this claim has to attempt. `skip`: recipients that were cancelled meanwhile."""

    task: Task
    delivery: Delivery
    channel: str
    lease: int
    entries: list[Entry]
    skip: set[str] = field(default_factory=set)

    def names(self) -> set[tuple[str, str]]:
        return {(str(entry.id), self.channel) for entry in self.entries}

    def open_names(self) -> set[tuple[str, str]]:
        return {name for name in self.names() if self.delivery.written.get(name, Status.QUEUED) in OPEN}

    def lose(self, recipients: set[str]) -> None:
        """These recipients are retried: a later parcel has their entries now."""
        self.entries = [entry for entry in self.entries if str(entry.id) not in recipients]
