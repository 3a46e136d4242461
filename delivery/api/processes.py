"""GET /v1/processes: what runs, what has failed and why, and what waits for a process. The accounts of the channels, by
which the couriers send: what is set up and from where, as whom it sends, what its provider said last.

Settings of accounts are written and never read: no answer contains one.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from core.deliveries.channels import StoredAccount, StoredAccounts
from core.errors import Conflict, Invalid, NotFound
from core.model.clock import from_ms
from core.model.field_types import PRINTABLE
from core.model.parts import PartState
from core.processes import FaultyPart, ProcessRegister, ProcessState, ProcessView, RequestKind, UnservedTube, overview
from couriers.channel import Channel, channels, receiving
from delivery.http.action_log import ABOUT
from delivery.http.context import Request, Response
from delivery.http.fields import RequestModel
from delivery.http.route import NoParameters, PlainRequest, Route, Routes


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


async def list_processes(request: PlainRequest) -> Response:
    core = request.services.core
    found = await overview(core.store, core.queue, core.channels)
    now = from_ms(core.store.now_ms())
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


async def start_process(request: Request[ProcessStart, NoParameters]) -> Response:
    """Have the `./ada up` beside this API start a process again that has ended; one that runs is left alone. A channel
    that has its account from the console may have no process yet.
    """
    verb = f"{request.body.kind} {request.body.name}".strip()
    if request.services.start_verb is None:
        raise Conflict("PROCESS_NOT_UNDER_UP", f"No `./ada up` runs beside this API: ./ada {verb}")
    of_console = [f"courier {channel}" for channel in await StoredAccounts(request.services.core.store).all()]
    await request.services.start_verb(verb, of_console)
    request.http[ABOUT] = verb
    return Response(None, status=204)


async def ask_process(request: Request[ProcessQuestion, NoParameters]) -> Response:
    """Ask a process that runs to take no more tasks, to take tasks again, to end, or to test its account. It does so
    within a few seconds.
    """
    core, id = request.services.core, request.part("process_id")  # noqa: A001 - the name of the field
    register = ProcessRegister(core.store)
    known = await register.list(core.store.now_ms())
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


CONSOLE = "the console"


class AccountSetting(Struct, frozen=True):
    """A setting that makes the account. `source`: where its text comes from, null if it is not known to be set. What
    does not come from the console is changed where it comes from.
    """

    name: str
    source: str | None
    may_change: bool


class AccountView(Struct, frozen=True, kw_only=True):
    """The account of a channel. `answer`: what the provider said of it `answered`. `version`: how often it was changed
    at the console, the last time by `by`. `processes`: the couriers that send as it.
    """

    channel: str
    account: str
    settings: Sequence[AccountSetting]
    answer: str
    answered: datetime | None
    is_refused: bool
    version: int
    by: str
    changed: datetime | None
    processes: Sequence[ListedProcess]


class AccountList(Struct, frozen=True):
    """The accounts in the order of channels. `now`: the server's time."""

    accounts: Sequence[AccountView]
    now: datetime


SettingText = Annotated[str, Meta(max_length=4096)]


class AccountChange(RequestModel, frozen=True):
    """`version`: of the account that was read; another one means that somebody has changed it since. `settings`: new
    texts by name; an empty one removes the setting, the others stay.
    """

    version: Annotated[int, Meta(ge=0)]
    settings: Annotated[dict[str, SettingText], Meta(min_length=1)]


class ChangedAccount(Struct, frozen=True):
    """The version of the account after the change."""

    channel: str
    version: int


async def list_accounts(request: PlainRequest) -> Response:
    """Return the account of each channel."""
    core = request.services.core
    found = (await overview(core.store, core.queue, core.channels)).processes
    stored = StoredAccounts(core.store)
    accounts, versions = await stored.all(), await stored.versions()
    views = [
        _view(channel, _couriers(found, name), accounts.get(name), versions.get(name, 0))
        for name, channel in channels().items()
        if channel.settings_of_account
    ]
    return Response(AccountList(views, from_ms(core.store.now_ms())))


def _couriers(found: Sequence[ProcessView], name: str) -> Sequence[ProcessView]:
    """Return the couriers of a channel, those that run first."""
    own = [one for one in found if (one.process.kind, one.process.name) == ("courier", name)]
    return sorted(own, key=lambda one: (not one.process.is_there, -one.process.beat))


def _view(channel: Channel, couriers: Sequence[ProcessView], stored: StoredAccount | None, version: int) -> AccountView:
    last = max((one.process for one in couriers), key=lambda one: one.answered, default=None)
    sources = _sources(couriers, stored)
    return AccountView(
        channel=channel.name,
        account=next((one.process.account for one in couriers if one.process.account), ""),
        settings=[
            AccountSetting(name, sources.get(name), sources.get(name, CONSOLE) == CONSOLE)
            for name in channel.settings_of_account
        ],
        answer=last.answer if last else "",
        answered=from_ms(last.answered) if last and last.answered else None,
        is_refused=bool(last and last.is_refused),
        version=version,
        by=stored.by if stored else "",
        changed=from_ms(stored.at) if stored else None,
        processes=[ListedProcess.of(one) for one in couriers],
    )


def _sources(couriers: Sequence[ProcessView], stored: StoredAccount | None) -> Mapping[str, str]:
    """Return the sources of the settings: as a courier has read them, or as they are stored."""
    read = next((one.process.sources for one in couriers if one.process.sources), {})
    of_console = dict.fromkeys(stored.settings if stored else (), CONSOLE)
    return {**of_console, **{name: source for name, source in read.items() if source != CONSOLE}}


async def change_account(request: Request[AccountChange, NoParameters]) -> Response:
    """Store settings of an account, encrypted. Its processes begin anew with them; one that has ended is started again
    by the `./ada up` beside the API.
    """
    name = request.part("channel")
    channel = channels().get(name)
    if channel is None or not channel.settings_of_account or request.services.accounts is None:
        raise NotFound("ACCOUNT_NOT_FOUND", f"There is no channel {name} with an account.")
    core, settings = request.services.core, request.body.settings
    _check(channel, settings)
    found = (await overview(core.store, core.queue, core.channels)).processes
    for setting, source in _sources(_couriers(found, name), None).items():
        if setting in settings:
            detail = f"{setting} comes from {source} and is changed there."
            raise Conflict("ACCOUNT_SET_ELSEWHERE", detail, f"settings.{setting}")
    person = request.identity.person
    by = f"person:{person.id}" if person else request.key.name
    version = await request.services.accounts.change(name, request.body.version, settings, by)
    await _start(request, name)
    return Response(ChangedAccount(name, version))


def _check(channel: Channel, settings: Mapping[str, str]) -> None:
    for name, text in settings.items():
        if name not in channel.settings_of_account:
            known = ", ".join(channel.settings_of_account)
            raise Invalid("SETTING_UNKNOWN", f"{name} is no setting of this account: {known}.", f"settings.{name}")
        if text != text.strip() or not text.isprintable():
            detail = f"{name} begins or ends with a space, or has a line break."
            raise Invalid("SETTING_INVALID", detail, f"settings.{name}")


async def _start(request: Request[AccountChange, NoParameters], channel: str) -> None:
    """Have the processes that have ended started again. Those elsewhere are started by who has started them."""
    start, found = request.services.start_verb, receiving().get(channel)
    if start is None:
        return
    with suppress(Conflict):
        for verb in (f"courier {channel}", *([f"bot {found.process}"] if found else [])):
            await start(verb, [verb])


ROUTES: Routes = (
    Route("GET", "/v1/accounts", "The accounts of the channels: where each comes from, and what its provider said",
          "operator", list_accounts, 200, AccountList),
    Route("PATCH", "/v1/accounts/{channel}", "Set, change or remove settings of an account; they are stored encrypted",
          "operator", change_account, 200, ChangedAccount, AccountChange),
    Route("GET", "/v1/processes", "The processes that run or have failed, and the tubes that wait for one",
          "operator", list_processes, 200, ProcessList),
    Route("POST", "/v1/processes:start", "Start a process of `./ada up` again that has ended", "operator",
          start_process, 204, body=ProcessStart),
    Route("POST", "/v1/processes/{process_id}/requests", "Ask a process to be quiet, to go on, to end, or to test its "
          "account", "operator", ask_process, 204, body=ProcessQuestion),
)  # fmt: skip
