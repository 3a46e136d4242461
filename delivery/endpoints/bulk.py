"""Many deliveries in one request: NDJSON in, NDJSON out, line by line and in order, whatever their number.

    reading:   chunks → lines → orders, one batch ahead
    enqueuing: one pipeline for each batch
    telling:   what the store said → lines of answer           into a bounded backlog
    writing:   as fast as the caller takes them

All go on at the same time. The store is at one batch while the next is read and the one before is told; and a caller
may well send everything before he reads anything: if reading waited for him to take his answers, both would wait for
ever. So answers may pile up, to a bound; then reading waits. A batch is sent when the one before is answered: lines
stay in order, whatever has to be repeated.

A bad line is answered with its problem and never stops the others.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from dataclasses import dataclass

from aiohttp import StreamReader, hdrs, web
from msgspec import UnsetType

from core.errors import Refused, StoreFull, StoreUnavailable
from core.model.delivery import Accepted, NewDelivery, Repeat
from delivery.endpoints.order_validation import Terms, make_order
from delivery.http import media
from delivery.http.context import Call
from delivery.http.decoding import Reader
from delivery.http.endpoint import IDEMPOTENCY_KEY, checked
from delivery.http.problems import NOTHING_WRITTEN, UNCLEAR, Problem, of_refusal, problem
from delivery.http.route import Nothing
from delivery.schemas import requests as schemas
from delivery.schemas.responses import LineAccepted, encode

CONTENT_TYPE = "application/x-ndjson"
TURN = 20  # lines that are read, or told, in one turn of the event loop
BATCH = 100  # lines that are enqueued together

_reader = Reader(schemas.BulkLine)


async def enqueue_many(call: Call[None, Nothing]) -> web.StreamResponse:
    """Take deliveries as they come."""
    lines = _lines(call)
    channels = call.services.channels
    register = channels.recall() or await channels.read()
    work = Work(call, Terms(call.tenant, register.names, call.desk.options), _repeat_key(call))
    response = web.StreamResponse(headers={hdrs.CONTENT_TYPE: CONTENT_TYPE})
    await response.prepare(call.request)
    await _both_ways(lines, work, response)
    await response.write_eof()
    return response


def _lines(call: Call[None, Nothing]) -> AsyncIterator[Sequence["Line"]]:
    options = call.desk.options
    media.check(call.request, media.LINES)
    if (call.request.content_length or 0) > options.bulk_limit:
        raise Refused("BODY_TOO_LARGE", f"At most {options.bulk_limit} bytes are allowed.")
    return read_lines(call.request.content, options.bulk_limit, options.line_limit)


def _repeat_key(call: Call[None, Nothing]) -> str | None:
    name = call.request.headers.get(IDEMPOTENCY_KEY)
    return None if name is None else checked(name)


class Backlog:
    """Answers on their way to the caller. While `most` bytes wait, `put` waits too."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0
        self._waiting = asyncio.Queue[bytes]()
        self._taken = asyncio.Event()

    async def put(self, answers: bytes) -> None:
        while self._held >= self._most:
            self._taken.clear()
            await self._taken.wait()
        self._held += len(answers)
        self._waiting.put_nowait(answers)

    async def take(self) -> bytes:
        answers = await self._waiting.get()
        self._held -= len(answers)
        self._taken.set()
        return answers


async def _both_ways(lines: AsyncIterator[Sequence["Line"]], work: "Work", response: web.StreamResponse) -> None:
    backlog = Backlog(work.terms.options.bulk_backlog)
    read, answered = asyncio.Queue[Batch | None](1), asyncio.Queue[Sequence[Result] | None](1)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_read(lines, work, read))
            tasks.create_task(_enqueue(read, work, answered))
            tasks.create_task(_tell(answered, backlog))
            tasks.create_task(_write(backlog, response))
    except BaseExceptionGroup as failed:  # the group is of our making; who answers knows its members' kinds
        raise failed.exceptions[0] from None


async def _read(lines: AsyncIterator[Sequence["Line"]], work: "Work", read: "asyncio.Queue[Batch | None]") -> None:
    async for some in lines:
        batch: list[tuple[int, Ordered]] = []
        for line in some:
            batch.append((line.number, work.order(line)))
            if not len(batch) % TURN:  # the store's answers, and other callers, are heard meanwhile
                await asyncio.sleep(0)
        await read.put(batch)
    await read.put(None)


async def _enqueue(
    read: "asyncio.Queue[Batch | None]", work: "Work", answered: "asyncio.Queue[Sequence[Result] | None]"
) -> None:
    while (batch := await read.get()) is not None:
        await answered.put(await work.enqueue(batch))
    await answered.put(None)


async def _tell(answered: "asyncio.Queue[Sequence[Result] | None]", backlog: Backlog) -> None:
    while (results := await answered.get()) is not None:
        for start in range(0, len(results), TURN):
            await backlog.put(b"".join([_line_told(*result) for result in results[start : start + TURN]]))
            await asyncio.sleep(0)
    await backlog.put(b"")


async def _write(backlog: Backlog, response: web.StreamResponse) -> None:
    while answers := await backlog.take():
        await response.write(answers)


# lines


@dataclass(frozen=True, slots=True)
class Line:
    """A line as it came, or why it could not come. Lines are counted from 1, empty ones too."""

    number: int
    raw: bytes
    refused: Refused | None = None


async def read_lines(content: StreamReader, most: int, longest: int) -> AsyncIterator[Sequence[Line]]:
    """Batches of lines, as they arrive. After `most` bytes the last line is a refusal."""
    splitter = Splitter(longest)
    try:
        async for chunk in _at_most(most, content.iter_any()):
            for batch in _batches(splitter.feed(chunk)):
                yield batch
    except Refused as refused:
        yield [splitter.refuse(refused)]
    except web.RequestPayloadError as broken:
        yield [splitter.refuse(Refused("BODY_MALFORMED", f"Here the body breaks: {type(broken).__name__}."))]
    else:
        for batch in _batches(splitter.feed(b"\n")):
            yield batch


async def _at_most(most: int, chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    left = most
    async for chunk in chunks:
        left -= len(chunk)
        if left < 0:
            raise Refused("BODY_TOO_LARGE", f"At most {most} bytes are allowed; from here on nothing was read.")
        yield chunk


def _batches(lines: Sequence[Line]) -> list[Sequence[Line]]:
    return [lines[start : start + BATCH] for start in range(0, len(lines), BATCH)]


class Splitter:
    """Cuts chunks into lines; of a line that is too long nothing is kept."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._rest = b""
        self._skipping = False
        self._number = 0

    def feed(self, chunk: bytes) -> list[Line]:
        """The lines that `chunk` completes, without the empty ones."""
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        lines = [self._line(raw) for raw in whole]
        if len(self._rest) > self._longest:
            self._skipping, self._rest = True, b""
        return [line for line in lines if line.refused or (not line.raw.isspace() and line.raw)]

    def _line(self, raw: bytes) -> Line:
        too_long, self._skipping = self._skipping or len(raw) > self._longest, False
        if too_long:
            return self.refuse(Refused("BODY_TOO_LARGE", f"A line has at most {self._longest} bytes."))
        self._number += 1
        return Line(self._number, raw)

    def refuse(self, why: Refused) -> Line:
        """The next line, as one that can not be taken."""
        self._number += 1
        return Line(self._number, b"", why)


# orders

Ordered = tuple[NewDelivery, Repeat | None] | Refused
Unaccepted = Refused | StoreFull | Problem
Batch = Sequence[tuple[int, Ordered]]
"""By the number of the line, as are the results."""
Result = tuple[int, Accepted | Unaccepted]


@dataclass(frozen=True, slots=True)
class Work:
    """Turns lines into orders and what the services says to them into lines."""

    call: Call[None, Nothing]
    terms: Terms
    repeat_key: str | None

    async def enqueue(self, batch: "Batch") -> Sequence["Result"]:
        """All that can be."""
        told = iter(await self._enqueue([order for _, order in batch if not isinstance(order, Refused)]))
        return [(number, order if isinstance(order, Refused) else next(told)) for number, order in batch]

    def order(self, line: Line) -> Ordered:
        """What a line asks for, or why that cannot be."""
        try:
            if line.refused:
                return line.refused
            given = _reader.read(line.raw)
            return make_order(given, self.terms), self._repeat(given, line)
        except Refused as refused:
            return refused

    def _repeat(self, given: schemas.BulkLine, line: Line) -> Repeat | None:
        """The line's own key goes before that of the request, which stands for as many keys as there are lines."""
        if not isinstance(given.idempotency_key, UnsetType):
            return Repeat(checked(given.idempotency_key), _fingerprint(line.raw))
        if self.repeat_key is None:
            return None
        return Repeat(f"{self.repeat_key}:{line.number}", _fingerprint(line.raw))

    async def _enqueue(self, orders: Sequence[tuple[NewDelivery, Repeat | None]]) -> Sequence[Accepted | Unaccepted]:
        if not orders:
            return ()
        try:
            accepted = await self.call.services.deliveries.enqueue_many(orders)
        except StoreUnavailable:
            return [problem("STORE_UNAVAILABLE", UNCLEAR)] * len(orders)
        self.call.desk.metrics.accepted += sum(isinstance(one, Accepted) for one in accepted)
        return accepted


def _fingerprint(raw: bytes) -> str:
    return hashlib.blake2b(raw.strip(), digest_size=16).hexdigest()


def _line_told(number: int, result: Accepted | Unaccepted) -> bytes:
    if isinstance(result, Accepted):
        return encode(LineAccepted.of(number, result)) + b"\n"
    return encode({"line": number, **_problem_of(result).as_json()}) + b"\n"


def _problem_of(result: Unaccepted) -> Problem:
    match result:
        case Refused():
            return of_refusal(result)
        case StoreFull():
            return problem("STORE_FULL", NOTHING_WRITTEN)
    return result
