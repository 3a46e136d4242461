"""Sends many deliveries in one request: NDJSON in, NDJSON out, line by line and in order, of any length.

    read:     chunks → lines → orders, one batch ahead
    enqueue:  one pipeline per batch
    encode:   results → response lines                           into a bounded buffer
    write:    as fast as the client reads

The four run at the same time: while the store works on one batch, the next is read and the previous one is encoded. A
client may send everything before it reads anything. If reading waited for the client, both would wait for ever; so
responses are buffered up to a limit, and only then reading waits. A batch is enqueued when the previous one is
complete, so lines stay in order even if commands are repeated.

An invalid line gets a problem document and does not stop the others.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from aiohttp import hdrs, web
from msgspec import UNSET, Meta, Struct, UnsetType, to_builtins
from msgspec.structs import astuple

from core.errors import Refused, StoreRefuses, StoreUnavailable
from core.model import delivery
from core.model.delivery import Accepted, Repeat
from core.model.states import DeliveryState
from core.orders import Order
from delivery.api.deliveries.sending import (
    DeliveryAccepted,
    DeliveryRequest,
)
from delivery.http.context import encode
from delivery.http.decoding import NDJSON_TYPES, BodyReader, check_content_type
from delivery.http.idempotency import IDEMPOTENCY_KEY, check_key, fingerprint
from delivery.http.receiving import Unpacker, check_content_length, chunks, unpacker_of
from delivery.http.responses import ndjson
from delivery.http.responses.ndjson import CONTENT_TYPE, Line, ResponseBuffer, read_lines
from delivery.http.responses.problems import (
    OUTCOME_UNKNOWN,
    ProblemDocument,
    problem,
    problem_of_refusal,
    problem_of_refused_write,
)
from delivery.http.route import PlainRequest, Repeats, Route, Routes

BATCH = 100
"""Lines that are enqueued together."""
SLICE = 20
"""Lines decoded or encoded before other requests of the process get their turn."""


class BulkLine(DeliveryRequest, frozen=True):
    """One line of a bulk request: a delivery with its Idempotency-Key."""

    idempotency_key: Annotated[str, Meta(min_length=1, max_length=255)] | UnsetType = UNSET


class LineAccepted(Struct):
    """One line of a bulk request was accepted. `replayed`: the line is a repeat, and this is the first response.
    `uninformed`, `unfilled`, `empty_office`: as in `DeliveryAccepted`.
    """

    line: int
    status: int
    replayed: bool
    id: str
    history_key: str
    state: DeliveryState
    deliver_at: str
    moved_from: str | None
    recipients: int
    uninformed: Sequence[delivery.Uninformed] | UnsetType = UNSET
    unfilled: Sequence[str] | UnsetType = UNSET
    empty_office: bool | UnsetType = UNSET

    @classmethod
    def of(cls, number: int, accepted: delivery.Accepted) -> "LineAccepted":
        return cls(number, 202, accepted.repeated, *astuple(DeliveryAccepted.of(accepted)))


Ordered = tuple[Order, Repeat | None] | Refused
Failure = Refused | StoreRefuses | StoreUnavailable
Result = Accepted | Failure
Numbered = Sequence[tuple[int, Ordered]]
"""Orders by the number of their line."""
_reader = BodyReader(BulkLine)


async def enqueue_many(request: PlainRequest) -> web.StreamResponse:
    """Accept deliveries as their lines arrive."""
    check_content_type(request.http, NDJSON_TYPES)
    check_content_length(request.http, request.options.bulk_limit)
    unpacker = unpacker_of(request.http)
    work = BulkWork(request, await _idempotency_key(request), unpacker)
    response = web.StreamResponse(headers={hdrs.CONTENT_TYPE: CONTENT_TYPE})
    await response.prepare(request.http)
    await _run(work, response)
    await response.write_eof()
    return response


async def _idempotency_key(request: PlainRequest) -> str | None:
    """Return the key of the request. Each line has a key of its own made of it, so a repeat may have other lines."""
    key = request.http.headers.get(IDEMPOTENCY_KEY)
    if key is not None:
        await request.services.idempotency.bind(request.tenant, check_key(key), fingerprint(b"bulk"))
    return key


# the four tasks


async def _run(work: "BulkWork", response: web.StreamResponse) -> None:
    buffer = ResponseBuffer(work.request.options.bulk_backlog)
    orders, results = asyncio.Queue[Numbered | None](1), asyncio.Queue[Sequence[tuple[int, Result]] | None](1)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_read(work, orders))
            tasks.create_task(_enqueue(work, orders, results))
            tasks.create_task(_encode(results, buffer))
            tasks.create_task(_write(buffer, response))
    except BaseExceptionGroup as failed:  # the group is an implementation detail; callers know its members
        raise failed.exceptions[0] from None


async def _read(work: "BulkWork", orders: "asyncio.Queue[Numbered | None]") -> None:
    async for lines in work.lines():
        batch: list[tuple[int, Ordered]] = []
        for line in lines:
            batch.append((line.number, await work.order(line)))
            if not len(batch) % SLICE:
                await asyncio.sleep(0)
        await orders.put(batch)
    await orders.put(None)


async def _enqueue(
    work: "BulkWork",
    orders: "asyncio.Queue[Numbered | None]",
    results: "asyncio.Queue[Sequence[tuple[int, Result]] | None]",
) -> None:
    while (batch := await orders.get()) is not None:
        await results.put(await work.enqueue(batch))
    await results.put(None)


async def _encode(results: "asyncio.Queue[Sequence[tuple[int, Result]] | None]", buffer: ResponseBuffer) -> None:
    while (batch := await results.get()) is not None:
        for start in range(0, len(batch), SLICE):
            await buffer.put(b"".join([response_line(*result) for result in batch[start : start + SLICE]]))
            await asyncio.sleep(0)
    await buffer.put(b"")


async def _write(buffer: ResponseBuffer, response: web.StreamResponse) -> None:
    while lines := await buffer.take():
        await response.write(lines)


# lines, orders, results


@dataclass(frozen=True, slots=True)
class BulkWork:
    """Turns lines into orders, and orders into results."""

    request: PlainRequest
    idempotency_key: str | None
    unpacker: Unpacker | None

    def lines(self) -> AsyncIterator[Sequence[Line]]:
        options = self.request.options
        body = chunks(self.request.http.content, options.body_timeout, self.unpacker)
        return read_lines(body, body_limit=options.bulk_limit, line_limit=options.line_limit, batch=BATCH)

    async def order(self, line: Line) -> Ordered:
        """Return the delivery that a line orders, or why it is refused."""
        try:
            if line.refused:
                return line.refused
            given = await _reader.read(line.raw)
            return given.order(self.request.tenant, self.request.options.max_days_ahead), self._repeat(given, line)
        except Refused as refused:
            return refused

    def _repeat(self, given: BulkLine, line: Line) -> Repeat | None:
        """Return the key of the line, or else of the request, which stands for one key per line."""
        if not isinstance(given.idempotency_key, UnsetType):
            return Repeat(check_key(given.idempotency_key), fingerprint(line.raw.strip()))
        if self.idempotency_key is None:
            return None
        return Repeat(f"{self.idempotency_key}:{line.number}", fingerprint(line.raw.strip()))

    async def enqueue(self, batch: Numbered) -> Sequence[tuple[int, Result]]:
        """Enqueue the valid orders of a batch; one result per line."""
        valid = [order for _, order in batch if not isinstance(order, Refused)]
        enqueued = iter(await self._enqueue(valid) if valid else ())
        return [(number, order if isinstance(order, Refused) else next(enqueued)) for number, order in batch]

    async def _enqueue(self, orders: Sequence[tuple[Order, Repeat | None]]) -> Sequence[Result]:
        try:
            results = await self.request.services.core.sending.send_many(orders, self.request.caller)
        except StoreUnavailable as error:
            return [error] * len(orders)
        self.request.context.metrics.accepted.inc(sum(isinstance(one, Accepted) for one in results))
        return results


def response_line(number: int, result: Result) -> bytes:
    if isinstance(result, Accepted):
        return encode(LineAccepted.of(number, result)) + b"\n"
    return encode({"line": number, **to_builtins(_problem(result))}) + b"\n"


def _problem(failure: Failure) -> ProblemDocument:
    match failure:
        case Refused():
            return problem_of_refusal(failure)
        case StoreRefuses():
            return problem_of_refused_write(failure)
        case StoreUnavailable():
            return problem("STORE_UNAVAILABLE", OUTCOME_UNKNOWN)


ROUTES: Routes = (
    Route("POST", "/v1/deliveries/bulk", "Many deliveries, one JSON document per line; one response per line", "send",
          enqueue_many, 200, ndjson.CONTENT_TYPE, repeats=Repeats.OWN, lines=(BulkLine, LineAccepted)),
)  # fmt: skip
