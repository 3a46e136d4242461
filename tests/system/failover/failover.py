"""A proof of high availability: people send on every channel while primaries are lost; counterparts keep a book.

senders ─▶ API ─▶ primaries and replicas ◀─ couriers ─▶ sandbox: its book ─┐
                        ▲                                                          verdict
                      blows                       histories of what was accepted ──┘
"""

import asyncio
import itertools
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, cast

from core.model.durability import Durability
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.server_checks import sign_layout
from core.redis.store import Store
from sandbox.inbox import Inbox
from sandbox.sandbox import Sandbox
from tests.support.servers import Server
from tests.support.stack import Stack
from tests.support.waiting import until
from tests.system.crash.installation import Installation
from tests.system.crash.process import AdaProcess
from tests.system.failover.blows import Promotion
from tests.system.failover.senders import Moment, Senders, lane_of
from tests.system.failover.servers_under_blows import ServersUnderBlows
from tests.system.soak.nemesis import Log

CHANNELS = ("telegram", "telegram-bot", "vk", "max", "sms", "email")
RECOGNISED = ("telegram", "vk")
"""Channels whose provider recognises a repeat. On the others an attempt whose answer was lost ends as unknown."""

GOES_ON = 2.0
"""Seconds after a promotion within which messages are accepted and sent again; more where processes wait for a
processor.
"""

_NEVER = float("inf")
_BOOK = 2_000_000
_FINISHING = 180.0
_PAGE = 200
_SENT = frozenset({"sent", "delivered", "read"})
_UNSENT = frozenset({"failed", "expired", "cancelled", "skipped"})


@dataclass(frozen=True)
class Plan:
    """`rate`: messages a second on each channel. `blows`: the most faults, for `seconds`; on a slow machine up to twice
    as long, until `sends` messages were accepted on each channel.
    """

    seed: int
    seconds: float = 600.0
    rate: float = 18.0
    channels: Sequence[str] = CHANNELS
    blows: int = 1_000_000

    @property
    def sends(self) -> int:
        return int(self.seconds / 600 * self.rate / Plan.rate * 10_000) if self.blows == Plan.blows else 0


@dataclass
class Outcome:
    """`gaps`: seconds from each promotion to the next message that was accepted on the new primary, and until one of
    those accepted since was sent. `elsewhere`: the longest time without an accepted message on the other primaries,
    during each. `beside`: what a proof of more has done, and how often.
    """

    plan: Plan
    findings: list[str] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    blows: Counter[str] = field(default_factory=Counter)
    gaps: list[tuple[float, float]] = field(default_factory=list)
    elsewhere: list[float] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    beside: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        blows = ", ".join(f"{count} {kind}" for kind, count in sorted(self.blows.items()))
        ends = ", ".join(f"{count} {kind}" for kind, count in sorted(self.statuses.items()))
        gaps = " and ".join(_spread(pauses) for pauses in zip(*self.gaps, strict=True))
        after = f"; accepted and sent again after {len(self.gaps)} promotions: {gaps}" if gaps else ""
        after += f"; longest pause on the other primaries: {_spread(self.elsewhere)}" if self.elsewhere else ""
        after += "".join(f", {count} {name}" for name, count in self.beside.items())
        return (
            f"seed {self.plan.seed}: {len(self.findings)} findings; accepted {self.statuses.total()}: {ends}; "
            f"blows: {blows}{after}; refused: {self.refused}"
        )


def _spread(pauses: Sequence[float]) -> str:
    return f"{median(pauses):.1f} s (median), {max(pauses):.1f} s (longest)"


class Failover:
    """One proof. `log` gets a line for each blow."""

    def __init__(self, servers: ServersUnderBlows, sandbox: Sandbox, directory: Path, plan: Plan, log: Log) -> None:
        self._servers = servers
        self._sandbox = sandbox
        self._directory = directory
        self._plan = plan
        self._log = log
        self._outcome = Outcome(plan)
        self._promotions: list[Promotion] = []
        self._senders: Senders
        self._api: AdaProcess
        self._couriers: Sequence[AdaProcess] = ()
        self._open: dict[str, dict[str, str]] = {}  # channel → text → id of those that have not ended
        self._ends: defaultdict[str, dict[str, str]] = defaultdict(dict)  # channel → text → status
        self._last_end = time.monotonic()
        self._calm = asyncio.Lock()
        """Held during each blow, and by what needs a while without one."""
        sandbox.state.messages = Inbox(_BOOK)

    async def run(self) -> Outcome:
        store = await Store.open(self._servers.url, self._servers.shards, durability=Durability.REPLICA)
        await sign_layout(store)
        servers = {"ADA_REDIS_URL": self._servers.url, "ADA_SHARDS": str(self._servers.shards)}
        settings = {**servers, "ADA_DURABILITY": "replica", "ADA_LEASE": "5s"}
        core = Stack(store, cast(Server, self._servers.one))
        installation = Installation(core, self._sandbox, self._directory, settings)
        try:
            await self._play(installation)
            await self._judge(installation)
        finally:
            await installation.close()
        return self._outcome

    async def _play(self, installation: Installation) -> None:
        self._api = installation.start_api()
        self._couriers = [installation.start("courier", channel) for channel in self._plan.channels]
        for process in self._couriers:
            await process.ready()
        self._senders = Senders(await installation.client_of(self._api), self._plan.rate, 16 * self._servers.primaries)
        sending = asyncio.create_task(self._senders.run(self._plan.channels))
        await until(lambda: len(self._senders.moments) > len(self._plan.channels))
        await self._begin_beside(installation)
        beside = asyncio.create_task(self._work_beside())
        await self._strike()
        self._senders.is_over = True
        if not await _ends_within(sending, _FINISHING):
            self._outcome.findings.append("a call was not accepted although everything runs again")
        self._outcome.refused = self._senders.refused
        await beside

    async def _begin_beside(self, installation: Installation) -> None:
        """Start what a proof of more needs."""

    async def _work_beside(self) -> None:
        """Do what a proof of more does until `self._senders.is_over`."""

    async def _strike(self) -> None:
        blows = self._servers.blows(self._plan.seed, self._log, self._promotions.append)
        began = time.monotonic()
        async with self._calm:
            await blows.begin()
        while self._goes_on(time.monotonic() - began) and blows.counts.total() < self._plan.blows:
            await asyncio.sleep(1.0)
            async with self._calm:
                try:
                    await blows.strike()
                except TimeoutError as late:
                    self._find(str(late))
        if self._fewest() < self._plan.sends:
            self._outcome.findings.append(f"only {self._fewest()} messages were accepted on a channel")
        with suppress(AssertionError):
            await until(lambda: not self._promotions or self._has_gone_on(), within=_FINISHING)
        self._outcome.blows = blows.counts

    def _goes_on(self, seconds: float) -> bool:
        longest = self._plan.seconds * (1 if self._fewest() >= self._plan.sends else 2)
        return seconds < longest

    def _fewest(self) -> int:
        return min(len(accepted) for accepted in self._senders.accepted.values())

    def _has_gone_on(self) -> bool:
        """Whether a message was accepted and sent since the last promotion."""
        inbox, last = self._sandbox.state.messages, self._promotions[-1]
        newest = {message.text for message in inbox.read(after=inbox.newest - _PAGE)}
        return any(moment.text in newest for moment in self._accepted_since(last))

    def _accepted_since(self, promotion: Promotion) -> Iterable[Moment]:
        """Return what was accepted on the new primary, from the newest on."""
        since = itertools.takewhile(lambda moment: moment.at >= promotion.at, reversed(self._senders.moments))
        return (moment for moment in since if moment.shard in promotion.shards)

    def _find(self, finding: str) -> None:
        self._log(f"found: {finding}")
        self._outcome.findings.append(finding)

    # the verdict

    async def _judge(self, installation: Installation) -> None:
        self._open = {channel: dict(accepted) for channel, accepted in self._senders.accepted.items()}
        self._last_end = time.monotonic()
        await until(self._have_ended, within=_NEVER, every=0.5)
        ends = {channel: found | dict.fromkeys(self._open[channel], "open") for channel, found in self._ends.items()}
        book = Counter((message.channel, message.text) for message in self._sandbox.state.inbox())
        for channel, found in ends.items():
            for text, status in found.items():
                self._outcome.statuses[f"{channel} {status}"] += 1
                self._check(channel, text, status, book[channel, text])
        self._outcome.findings += [f"{key} was sent {count} times" for key, count in book.items() if count > 1]
        self._check_gaps()
        self._check_lanes()
        try:
            await installation.audit()
        except AssertionError as fault:
            self._outcome.findings.append(f"audit: {fault}")

    def _check(self, channel: str, text: str, status: str, copies: int) -> None:
        found = self._outcome.findings
        if status in _SENT and not copies:
            found.append(f"{text} is {status}, and the provider has not received it")
        elif status in _UNSENT and copies:
            found.append(f"{text} is {status}, and the provider has received it")
        elif status not in _SENT | {"unknown"} or (status == "unknown" and channel in RECOGNISED):
            found.append(f"{text} ended as {status}")

    async def _have_ended(self) -> bool:
        """Read the deliveries that were open. Return whether none is, or none has ended for `_FINISHING` seconds."""
        for channel, texts in self._open.items():
            if found := await self._read_ends(channel, list(texts.items())):
                self._last_end = time.monotonic()
            self._ends[channel] |= found
            self._open[channel] = {text: delivery_id for text, delivery_id in texts.items() if text not in found}
        return not any(self._open.values()) or time.monotonic() - self._last_end > _FINISHING

    async def _read_ends(self, channel: str, deliveries: Sequence[tuple[str, str]]) -> dict[str, str]:
        """Return text → how the delivery to its one recipient has ended, of those that have."""
        found: dict[str, str] = {}
        for start in range(0, len(deliveries), _PAGE):
            page = deliveries[start : start + _PAGE]
            replies = await asyncio.gather(*(self._history(delivery_id) for _, delivery_id in page))
            found |= {text: end(channel, *reply) for (text, _), reply in zip(page, replies, strict=True)}
        return {text: status for text, status in found.items() if status != "open"}

    async def _history(self, delivery_id: str) -> tuple[int, Any]:
        return await self._senders.api.request("GET", f"/v1/deliveries/{delivery_id}")

    def _check_gaps(self) -> None:
        sent = {message.text: message.at for message in self._sandbox.state.inbox()}
        for promotion in self._promotions:
            later = [(moment.at, sent.get(moment.text, 0.0)) for moment in self._accepted_since(promotion)]
            first = min((accepted for accepted, _ in later), default=_NEVER)
            # What is in the book before has been accepted before, and the caller has got the answer to its repeat.
            first_sent = min((at for _, at in later if at >= promotion.at), default=_NEVER)
            gaps = first - promotion.at, first_sent - promotion.at
            self._outcome.gaps.append(gaps)
            if max(gaps) > GOES_ON * promotion.load:
                self._find(f"went on {max(gaps):.1f} s after a promotion with the load {promotion.load:.1f}")
            if self._servers.primaries > 1:
                self._outcome.elsewhere.append(self._pause_elsewhere(promotion))

    def _pause_elsewhere(self, promotion: Promotion) -> float:
        """Return the longest time without an accepted message in other shards, from the blow to the promotion."""
        elsewhere = (moment.at for moment in self._senders.moments if moment.shard not in promotion.shards)
        within = [at for at in elsewhere if promotion.struck < at < promotion.at]
        pauses = itertools.pairwise([promotion.struck, *within, promotion.at])
        return max(after - before for before, after in pauses)

    def _check_lanes(self) -> None:
        """What a lane sent first came first."""
        last: dict[str, int] = {}
        for message in self._sandbox.state.inbox():
            lane, number = lane_of(message.text), int(message.text.split()[1])
            if lane and last.get(lane, 0) > number:
                self._outcome.findings.append(f"{message.text} was sent after {last[lane]} of its lane")
            last[lane] = number


async def _ends_within(task: "asyncio.Task[None]", seconds: float) -> bool:
    _, running = await asyncio.wait([task], timeout=seconds)
    await cancel_and_wait(*running)
    return not running


def end(channel: str, status: int, history: Any) -> str:
    """Return how a delivery to one recipient has ended."""
    if status == 404:
        return "lost"
    if status != 200 or not history["finished_at"]:
        return "open"
    return next(str(name) for name in history["channels"][channel] if name != "state")
