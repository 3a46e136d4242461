"""GET /v1/processes: what runs, what has failed and why, and what waits for a process."""

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from core.errors import Conflict, NotFound
from core.model.clock import from_ms
from core.model.field_types import PRINTABLE
from core.model.parts import PartState
from core.processes import FaultyPart, ProcessRegister, ProcessState, ProcessView, RequestKind, UnservedTube, overview
from delivery.http.action_log import ABOUT
from delivery.http.context import Request, Response
from delivery.http.fields import RequestModel
from delivery.http.route import NoParameters, Route, Routes


class ProcessThrottle(Struct, frozen=True):
    """A wait that the provider has named, for the account or a method."""

    scope: str
    until: datetime


class ListedProcess(Struct, frozen=True, kw_only=True):
    """One process. `kind`: its verb on the command line; `name`: the channel of a courier or a bot. `since`: when its
    state began; `beat`: its last sign of life. `reason`: why it failed or halted. `rate`: the calls per second that
    the provider has been found to accept, null while nothing limits. `balance`: what is left on the account.
    `is_quiet`: it takes no tasks until it is resumed. `fault`: what it cannot do now, though it runs.
    """

    id: str
    kind: str
    name: str
    command: str
    tubes: Sequence[str]
    host: str
    pid: int
    version: str
    started: datetime
    beat: datetime
    state: ProcessState
    since: datetime
    reason: str
    account: str
    throttles: Sequence[ProcessThrottle]
    rate: float | None
    balance: float | None
    low_balance: float | None
    is_quiet: bool
    fault: str

    @classmethod
    def of(cls, view: ProcessView) -> "ListedProcess":
        one = view.process
        return cls(
            id=one.id,
            kind=one.kind,
            name=one.name,
            command=one.command,
            tubes=one.tubes,
            host=one.host,
            pid=one.pid,
            version=one.version,
            started=from_ms(one.started),
            beat=from_ms(one.beat),
            state=one.state,
            since=from_ms(one.since),
            reason=one.reason,
            account=one.account,
            throttles=[ProcessThrottle(throttle.scope, from_ms(throttle.until)) for throttle in view.throttles],
            rate=view.rate,
            balance=one.balance,
            low_balance=one.low_balance,
            is_quiet=one.is_quiet,
            fault=one.fault,
        )


class FaultyPartView(Struct, frozen=True):
    """A part of the `./ada up` on a machine that should run and does not. `ends`: how often it has ended in a row since
    `since`; `reason`: the last time how.
    """

    name: str
    host: str
    state: PartState
    since: datetime
    ends: int
    reason: str

    @classmethod
    def of(cls, found: FaultyPart) -> "FaultyPartView":
        part = found.part
        return cls(part.name, found.host, part.state, from_ms(part.since), part.ends, part.reason)


class ProcessList(Struct, frozen=True):
    """`unserved`: tubes with ready tasks that no process works on. `unanswered`: bots that receive what people write
    while no process answers. `faulty`: the parts of `./ada up` that should run and do not. `now`: the server's time,
    for countdowns.
    """

    processes: Sequence[ListedProcess]
    unserved: Sequence[UnservedTube]
    unanswered: Sequence[str]
    faulty: Sequence[FaultyPartView]
    now: datetime


async def list_all(request: Request[None, NoParameters]) -> Response:
    """Return all processes by kind and name."""
    core = request.services.core
    found = await overview(core.store, core.queue, core.channels)
    now = from_ms(int(time.time() * 1000) + core.store.clock_offset_ms)
    processes = [ListedProcess.of(view) for view in found.processes]
    faulty = [FaultyPartView.of(part) for part in found.faulty]
    return Response(ProcessList(processes, found.unserved, found.unanswered, faulty, now))


class ProcessStart(RequestModel, frozen=True):
    """A process of `./ada up`, as the list of processes names it."""

    kind: Literal["courier", "bot", "scenarios", "jobs"]
    name: Annotated[str, Meta(max_length=128, pattern=PRINTABLE, description="printable characters")] = ""


class ProcessQuestion(RequestModel, frozen=True):
    """A request to a process."""

    request: RequestKind


async def start(request: Request[ProcessStart, NoParameters]) -> Response:
    """Have the `./ada up` beside this API start a process again that has ended; one that runs is left alone."""
    verb = f"{request.body.kind} {request.body.name}".strip()
    if request.services.start_verb is None:
        raise Conflict("PROCESS_NOT_UNDER_UP", f"No `./ada up` runs beside this API: ./ada {verb}")
    await request.services.start_verb(verb)
    request.http[ABOUT] = verb
    return Response(None, status=204)


async def ask(request: Request[ProcessQuestion, NoParameters]) -> Response:
    """Ask a process that runs to take no more tasks, to take tasks again, to end, or to test its account. It does so
    within a few seconds.
    """
    core, id = request.services.core, request.http.match_info["process_id"]  # noqa: A001 - the name of the field
    register = ProcessRegister(core.store)
    known = await register.list(int(time.time() * 1000) + core.store.clock_offset_ms)
    process = next((one for one in known if one.id == id), None)
    if process is None:
        raise NotFound("PROCESS_NOT_FOUND", "There is no such process, or it has ended long ago.")
    if not process.is_there:
        raise Conflict("PROCESS_HAS_ENDED", "This process does not run, so nothing can be asked of it.")
    if request.body.request is RequestKind.TEST and process.kind != "courier":
        raise Conflict("PROCESS_HAS_NO_ACCOUNT", "Only a courier has an account to test.")
    await register.ask(id, request.body.request)
    request.http[ABOUT] = f"{process.kind} {process.name}: {request.body.request}"
    return Response(None, status=204)


ROUTES: Routes = (
    Route("GET", "/v1/processes", "The processes that run or have failed, and the tubes that wait for one",
          "operator", list_all, 200, ProcessList),
    Route("POST", "/v1/processes:start", "Start a process of `./ada up` again that has ended", "operator", start, 204,
          body=ProcessStart),
    Route("POST", "/v1/processes/{process_id}/requests", "Ask a process to be quiet, to go on, to end, or to test its "
          "account", "operator", ask, 204, body=ProcessQuestion),
)  # fmt: skip
