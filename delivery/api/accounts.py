"""The accounts of the channels: what is set up for each and from where, as whom it sends, what its provider said last.

Settings are written and never read: no answer contains one.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from core.errors import Conflict, Invalid, NotFound
from core.model.clock import from_ms
from core.processes import ProcessView, overview
from core.processes.accounts import StoredAccount, StoredAccounts
from couriers.channel import Channel, channels, receiving
from delivery.api.processes import ListedProcess
from delivery.http.context import Request, Response
from delivery.http.fields import RequestModel
from delivery.http.route import NoParameters, Route, Routes

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


async def list_all(request: Request[None, NoParameters]) -> Response:
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
    return Response(AccountList(views, from_ms(int(time.time() * 1000) + core.store.clock_offset_ms)))


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


async def change(request: Request[AccountChange, NoParameters]) -> Response:
    """Store settings of an account, encrypted. Its processes begin anew with them; one that has ended is started again
    by the `./ada up` beside the API.
    """
    name = request.http.match_info["channel"]
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
        await start(f"courier {channel}")
        if found:
            await start(f"bot {found.process}")


ROUTES: Routes = (
    Route("GET", "/v1/accounts", "The accounts of the channels: where each comes from, and what its provider said",
          "operator", list_all, 200, AccountList),
    Route("PATCH", "/v1/accounts/{channel}", "Set, change or remove settings of an account; they are stored encrypted",
          "operator", change, 200, ChangedAccount, AccountChange),
)  # fmt: skip
