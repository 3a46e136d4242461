"""The message of the day: the texts of all deliveries for a person who wants one message a day, in one (W-43).

At the person's hour each parcel announces its entries (`sending`) and puts their texts into a record of the address,
which stands in the shard of the address. Whoever asks first after a short window takes all of them in one step, sends
them as one message and notes the outcome; the others, in any shard and process, wait for it.

    join ─▶ gathers ─▶ window over: one caller takes all ─▶ sends ─▶ ended: the outcome, for each part
                                                            └─ killed meanwhile: lost, unknown for all parts

A part has the same name in each claim of its entry, so a killed process doubles nothing: the next claim finds its part
still gathered, taken, or ended. What may have been sent is never sent again, so the provider need not recognise it.
Texts that do not fit into one message of the channel go in further ones. A part that is alone is an ordinary message.
Deliveries with files, buttons, marks or a question, and channels that are paid in parts, are not joined.

Called by `couriers.sending.courier_attempts`; calls `lua/delivery/functions/join_day.lua` and
`lua/delivery/functions/end_day.lua`.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from datetime import timedelta
from typing import Any, NamedTuple

import msgspec

from core.errors import StoreError
from core.model.clock import in_ms
from core.model.json_form import compact_json
from core.model.states import Reason
from core.queue.checks import error_text
from core.redis.store import Argument, Store
from couriers.sending.account_throttle import AccountThrottle
from couriers.sending.interface import (
    Courier,
    Deferred,
    Halted,
    HasLimits,
    Message,
    Outcome,
    Partly,
    Rejected,
    Scope,
    Sent,
    Split,
    Unknown,
)

log = logging.getLogger(__name__)

_LONGEST_PAUSE, _PAUSES_PER_WINDOW = 0.5, 5
_STORE_PAUSE = 1.0
_WINDOWS_PER_LEASE, _LEASES_UNTIL_LOST = 10, 4
"""From the first part on, a tenth of a lease is waited for others. An attempt that takes longer than four leases counts
as that of a killed process.
"""


Send = Callable[[Sequence[Message]], Awaitable[Sequence[Outcome]]]
"""Makes one attempt."""


class DayPart(NamedTuple):
    """`name`: the same in each claim of its entry. `ordered`: Unix ns, by which parts are sorted. `has_joined`: an
    earlier claim has announced it.
    """

    name: str
    ordered: int
    message: Message
    has_joined: bool = False


class DayMessages:
    """One per account. `lease`: of a parcel. `concurrency`: messages under way at once."""

    def __init__(
        self,
        store: Store,
        courier: Courier,
        account: AccountThrottle,
        lease: timedelta,
        is_stopping: Callable[[], bool],
        concurrency: int,
    ) -> None:
        self._store = store
        self._courier = courier
        self._account = account
        window = lease / _WINDOWS_PER_LEASE
        self._window_ms = in_ms(window)
        self._pause = min(_LONGEST_PAUSE, window.total_seconds() / _PAUSES_PER_WINDOW)
        self._lost_ms = _LEASES_UNTIL_LOST * in_ms(lease)
        self._is_stopping = is_stopping
        self._permits = asyncio.Semaphore(concurrency)

    async def attempt(self, tenant: str, parts: Sequence[DayPart], send: Send) -> list[Outcome]:
        """Return the outcomes of parts that were announced. Raises StoreError if the process stops meanwhile."""
        return await asyncio.gather(*(self._outcome(tenant, part, send) for part in parts))

    async def _outcome(self, tenant: str, part: DayPart, send: Send) -> Outcome:
        """Wait for what becomes of a part; send all parts of its address if this call is the one that takes them."""
        found = await self._join(tenant, part, "follow" if part.has_joined else "join")
        while True:
            match found:
                case ["ended", str(text)]:
                    return _decoded(text)
                case ["lost"]:
                    return Unknown("the process that sent the message of the day was lost")
                case ["left"]:
                    wait = max(0.0, self._account.until - time.monotonic())
                    return Deferred(Reason.THROTTLED, timedelta(seconds=wait))
                case ["gathers", 0]:
                    found = await self._take_turn(tenant, part, send)
                case ["gathers" | "taken", *wait_ms]:
                    await asyncio.sleep(min([self._pause, *(one / 1000 for one in wait_ms)]))
                    found = await self._join(tenant, part, "follow")
                case _:
                    outcome: Outcome = found
                    return outcome

    async def _take_turn(self, tenant: str, part: DayPart, send: Send) -> Any:
        """Take all parts and send them, in the turn of the account. Returns the outcome of `part`; the reply of
        join_day if there was nothing to take.
        """
        async with self._permits:
            await self._account.wait_for_turn()
            found = await self._join(tenant, part, "leave" if self._account.is_throttled else "send")
            return await self._send_all(tenant, part, found[1:], send) if found[0] == "sends" else found

    async def _send_all(self, tenant: str, own: DayPart, taken: Sequence[str], send: Send) -> Outcome:
        """Send parts that were taken, in as few messages as the channel needs. Returns the outcome of `own`."""
        parts = sorted(map(_part_of, taken[::2], taken[1::2]), key=lambda part: (part.ordered, part.name))
        numbered = {part.name: f"{n}/{len(parts)} · " if len(parts) > 1 else "" for n, part in enumerate(parts, 1)}
        limit = self._courier.limits.text if isinstance(self._courier, HasLimits) else 0
        groups, stopped = deque(_packed(parts, numbered, limit)), None
        outcomes: dict[str, Outcome] = {}
        while groups:
            group = groups.popleft()
            outcome = stopped or await self._attempted(own.message, group, numbered, send)
            if _is_refused_for_its_text(outcome) and len(group) > 1:
                groups.extendleft([part] for part in reversed(group))
                continue
            stopped = outcome if isinstance(outcome, Halted | Deferred) else stopped
            outcomes |= await self._end(tenant, own.message.address, group, outcome)
        return outcomes[own.name]

    async def _attempted(
        self, own: Message, group: Sequence[DayPart], numbered: Mapping[str, str], send: Send
    ) -> Outcome:
        """Send parts as one message. `own`: that of the caller; its address and subscription are those of all."""
        text = "\n\n".join(numbered[part.name] + part.message.text for part in group)
        message = replace(group[-1].message, address=own.address, text=text, subscription=own.subscription)
        try:
            (outcome,) = await send([message])
        except Exception as fault:
            log.exception("%s: a message of the day failed", self._courier.channel)
            return Unknown(error_text(fault))
        return outcome.rejected if isinstance(outcome, Split) else outcome

    async def _end(
        self, tenant: str, address: str, group: Sequence[DayPart], outcome: Outcome
    ) -> Mapping[str, Outcome]:
        """Note the outcome of a message for its parts; return it for each. Only the last part has the reference, by
        which a reply finds its delivery.
        """
        last = replace(outcome, in_day_message=len(group) > 1) if isinstance(outcome, Sent) else outcome
        others = replace(last, reference="") if isinstance(last, Sent) else last
        names = [part.name for part in group]
        deferred = int(isinstance(outcome, Deferred | Halted))
        words = deferred, _encoded(others), _encoded(last), compact_json(names)
        await self._run("end_day", tenant, address, *words)
        return {**dict.fromkeys(names, others), names[-1]: last}

    async def _join(self, tenant: str, part: DayPart, step: str) -> Any:
        window_ms = 0 if self._is_stopping() else self._window_ms
        words = part.name, _text_of(part) if step == "join" else "", step, window_ms, self._lost_ms
        return await self._run("join_day", tenant, part.message.address, *words)

    async def _run(self, function: str, tenant: str, address: str, *words: Argument) -> Any:
        """Run a function until the store works; each may be repeated. Raises StoreError when the process stops."""
        shard = self._store.shard_of_person(tenant, self._courier.channel, address)
        while True:
            try:
                return await self._store.run(function, shard, tenant, self._courier.channel, address, *words)
            except StoreError as fault:
                if self._is_stopping():
                    raise
                log.warning("%s: messages of the day wait for the store: %s", self._courier.channel, fault)
            await asyncio.sleep(_STORE_PAUSE)


def _packed(parts: Iterable[DayPart], numbered: Mapping[str, str], limit: int) -> Iterator[list[DayPart]]:
    """Emit the parts of each message, of at most `limit` UTF-16 code units; 0 for no limit."""
    group: list[DayPart] = []
    length = 0
    for part in parts:
        added = len((numbered[part.name] + part.message.text + "\n\n").encode("utf-16-le")) // 2
        if group and limit and length + added > limit:
            yield group
            group, length = [], 0
        group.append(part)
        length += added
    if group:
        yield group


def _is_refused_for_its_text(outcome: Outcome) -> bool:
    return isinstance(outcome, Rejected) and outcome.reason is Reason.CONTENT_REFUSED


def _text_of(part: DayPart) -> str:
    """Return a part as it is kept, with what a message of it alone needs."""
    one = part.message
    facts = one.text, one.seed, one.recipient, one.report_url, one.preferences_url, one.reply_to, one.bounce_to
    return compact_json((part.ordered, *facts))


def _part_of(name: str, text: str) -> DayPart:
    ordered, written, seed, recipient, report_url, *urls = msgspec.json.decode(text)
    return DayPart(name, ordered, Message("", written, seed, recipient, report_url, None, *urls))


def _encoded(outcome: Outcome) -> str:
    """Return an outcome for the other parts. What concerns the account is noted by the process that has sent."""
    match outcome:
        case Sent():
            row: Sequence[Any] = ("sent", *astuple(outcome))
        case Rejected(reason, detail):
            row = ("rejected", reason, detail)
        case Deferred(reason, after, _, detail, is_guess):
            row = ("deferred", reason, None if after is None else after.total_seconds(), detail, is_guess)
        case Halted():
            row = ("deferred", Reason.ACCOUNT_STOPPED, _STORE_PAUSE, outcome.detail, False)
        case Partly():
            row = ("unknown", "a part of the message was sent")
        case _:
            row = ("unknown", outcome.detail)
    return compact_json(row)


def _decoded(text: str) -> Outcome:
    match msgspec.json.decode(text):
        case ["sent", reference, peer, number, not_shown, in_day_message]:
            return Sent(reference, peer, number, tuple(not_shown), in_day_message)
        case ["rejected", reason, detail]:
            return Rejected(Reason(reason), detail)
        case ["deferred", reason, after, detail, is_guess]:
            wait = None if after is None else timedelta(seconds=after)
            return Deferred(Reason(reason), wait, Scope.RECIPIENT, detail, is_guess)
        case [_, detail]:
            return Unknown(detail)
    raise ValueError(text)
