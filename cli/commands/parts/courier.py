"""The verb courier: one process that delivers through one channel, as the account of the settings; with a folder of
bots in ADA_SCENARIOS as the bot of each tenant. The account of the settings is then that of ADA_BOT_TENANT, also if
that tenant has no folder.

Exit codes: 0 after a request to stop, 1 when the provider could not be reached at the start (a restart may help),
2 for wrong settings, 3 when the account is halted and an operator is needed. What stops one of several accounts is
noted instead, and stops no other.
"""

import asyncio
import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from cli.command import FAILURE, OPERATOR_NEEDED, SUCCESS, Command, CommandFailed
from cli.processes.bot_folders import BotFolders
from cli.processes.data_directory import prepare_data_directory, private_directory
from cli.processes.embedded_valkey import running_url
from cli.processes.noted_process import NotedProcess, noted_process
from cli.processes.parts import runs_under_up, start_by_up
from cli.processes.startup import (
    HEALTH_FILE,
    add_healthy_option,
    collect_garbage_less_often,
    configure_logging,
    is_healthy,
    run_with_restarts,
    stop_requested,
    touch_while_working,
)
from cli.processes.supervisor import announce
from cli.services.accounts import ConsoleAccounts, sources_of
from cli.services.store import open_store
from cli.settings.bot_folders import BotFolder, read_bots, read_senders
from cli.settings.secrets import receiver
from cli.settings.settings import Configuration, courier_module, load
from core.deliveries.channels import Channels
from core.errors import AdaError, SetupError, StoreError
from core.model.clock import Backoff
from core.monitoring.halts import Halts
from core.processes import ProcessState
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.store import Store
from core.sentence import Text
from core.uploads import MiB
from couriers.channel import channels
from couriers.provider_calls import secrets_of
from couriers.sending.bot_replies import SignsInAsBot
from couriers.sending.interface import Courier, HasBalance, HasTest
from couriers.sending.runtime import EVERY_TENANT, Runtime
from couriers.sending.services import CourierOptions

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 5.0, 300.0
"""Seconds until a provider that refuses one of several accounts, or cannot be reached, is asked again."""

BALANCE_INTERVAL = 600.0
"""Seconds between two readings of the balance of an account."""


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("channel", choices=sorted(channels()), help="the channel to deliver through")
    add_healthy_option(parser, "process of this channel")


def run(arguments: Namespace) -> int:
    configuration = load(may_receive=receiver(arguments.channel))
    directory = courier_directory(configuration, arguments.channel)
    if arguments.healthy:
        return SUCCESS if is_healthy(directory / HEALTH_FILE) else FAILURE
    verb = f"courier {arguments.channel}"
    if runs_under_up(configuration, arguments.channel, verb):
        return start_by_up(configuration.settings.data, verb)
    configure_logging(configuration.settings)
    prepare_data_directory(configuration.settings.data)
    private_directory(private_directory(directory.parent) / directory.name)
    return run_with_restarts(partial(run_courier, configuration, arguments.channel, directory))


def courier_directory(configuration: Configuration, channel: str) -> Path:
    return configuration.settings.data.absolute() / "couriers" / channel


async def run_courier(configuration: Configuration, channel: str, directory: Path) -> int:
    if configuration.settings.redis_url is None and running_url(configuration.settings.data / "valkey") is None:
        check_settings(configuration, channel)  # they are reported before the server that is missing
    async with (
        open_store(configuration, waits=True) as store,
        noted_process(store, "courier", channel, data=configuration.settings.data) as process,
    ):
        stop = stop_requested()  # before, a signal simply ends the process
        accounts = ConsoleAccounts(store, channel)
        configuration = await accounts.added_to(configuration)
        process.has_old_settings = accounts.have_changed
        process.note(sources=sources_of(channel, configuration.raw))
        couriers = Couriers(configuration, channel, directory, store)
        process.test = partial(test_account, couriers, process)
        try:
            check_settings(configuration, channel)
            await couriers.folders.check()
            collect_garbage_less_often()
            code = await deliver(couriers.runtime, process, stop, directory / HEALTH_FILE, couriers.folders.keep())
            if couriers.runtime.halted:
                await couriers.inform(couriers.runtime.halted)
            return code
        except (CommandFailed, SetupError) as fault:  # the account was not accepted
            process.answered(str(fault), is_refused=True)
            raise
        finally:
            await couriers.close()


def check_settings(configuration: Configuration, channel: str) -> None:
    """Raise SetupError for wrong settings of the account of the installation."""
    for bot in read_senders(channel, configuration).values():
        if bot.is_only:
            bot.configuration.channel(channel)


class Couriers:
    """The couriers of a channel in this process, one for each account: that of the settings, or those of the folders of
    bots. `directory`: keeps what each has to remember.
    """

    def __init__(self, configuration: Configuration, channel: str, directory: Path, store: Store) -> None:
        self._configuration = configuration
        self._channel = channel
        self._directory = directory
        self._lease = configuration.settings.lease
        self.folders = BotFolders(
            configuration, store, channel, self._start, self._stop, partial(read_senders, channel)
        )
        self._public_url = (configuration.settings.public_url or "").rstrip("/")
        options = self._linking(CourierOptions(lease=self._lease))
        self._halts = Halts(
            store, Channels(store), configuration.settings.bot_tenant, configuration.settings.operators or ""
        )
        self.runtime = Runtime(store, channel, options, self._note_halt, self._halts.report_refusal)
        self._opening: dict[str, asyncio.Task[None]] = {}

    async def _start(self, bot: BotFolder) -> None:
        """Sign in as a bot, and send as it from then on. Raises SetupError for a setting that is missing, and
        CommandFailed if the provider refuses the only one: that may be an outage, so the process is restarted.
        """
        if not bot.has_account(self._channel):
            return
        settings = bot.configuration.channel(self._channel)
        if not bot.is_only:
            self._opening[bot.tenant] = asyncio.create_task(self._keep_opening(bot.tenant, settings))
            return
        try:
            await self._open(EVERY_TENANT, settings, self._directory)
        except SetupError as error:
            raise CommandFailed(str(error)) from error

    async def _open(self, tenant: str, settings: Any, directory: Path) -> None:
        """Sign in at the provider. Raises SetupError, StoreError."""
        courier: Courier = await courier_module(self._channel).open(settings, directory)
        self._leave_replies_of_shared_bot(courier)
        options = self._linking(courier_options(self._channel, settings, self._lease))
        common = self._configuration.settings
        options = replace(
            options,
            tenant=common.bot_tenant,
            staff_writes_to_all=common.staff_writes_to_all,
            files_limit=common.files_total_mb * MiB,
        )
        await self.runtime.add(courier, tenant, options)
        await self._halts.works(self._channel, tenant)

    def _leave_replies_of_shared_bot(self, courier: Courier) -> None:
        """Let the process of another channel get what people write to a bot that both have: each message comes to
        both.
        """
        other = channels()[self._channel].shares_bot_with
        if not other or not isinstance(courier, SignsInAsBot):
            return
        account, folders = channels()[other].account, read_bots(self._configuration, receiver(self._channel))
        settings = [self._configuration.raw, *(one.own for one in folders.values())]
        if any(courier.is_account_of(one[account].text) for one in settings if account in one):
            log.info("what people write to this bot is read by the process of %s", other)
            courier.leave_replies_to(other)

    async def _note_halt(self, tenant: str, reason: Text) -> None:
        await self.folders.note(tenant, str(reason))
        await self.inform(reason, tenant)

    async def inform(self, reason: Text, tenant: str = EVERY_TENANT) -> None:
        """Inform the operators that an account has stopped. A store that fails keeps nobody from stopping."""
        try:
            await self._halts.note(self._channel, reason, tenant)
        except AdaError as fault:
            log.error("nobody is informed that %s has stopped: %s", self._channel, fault)

    def _linking(self, options: CourierOptions) -> CourierOptions:
        """Return the options with the ways back of recipients: the mailbox, and pages, if people can reach them; and
        with the time zones in which they read until when they can answer.
        """
        url, common = self._public_url, self._configuration.settings
        options = replace(options, timezone=common.timezone, tenant_timezones=common.tenant_timezones)
        if channels()[self._channel].takes_replies_by_mail:
            options = replace(options, mailbox=common.inbound_mail or "")
        return replace(options, answer_url=f"{url}/a/", preferences_url=f"{url}/p/") if url else options

    async def _keep_opening(self, tenant: str, settings: Any) -> None:
        """Sign in; while the provider refuses it, or cannot be reached, try again from time to time."""
        directory, pause = private_directory(self._directory / tenant), FIRST_PAUSE
        while True:
            try:
                await self._open(tenant, settings, directory)
                return await self.folders.clear(tenant)
            except SetupError as error:
                await self.folders.note(tenant, str(error))
            except StoreError as fault:
                log.warning("the courier of %s is opened again: %s", tenant, fault)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def test(self) -> str:
        """Ask the provider whether it accepts the account of the settings; return its name. Raises SetupError."""
        courier: object = self.runtime.only
        if self.runtime.only and isinstance(courier, HasTest):
            await courier.test()
            return self.runtime.only.account
        settings = self._configuration.channel(self._channel)
        again: Courier = await courier_module(self._channel).open(settings, self._directory)
        await again.close()
        return again.account

    async def _stop(self, tenant: str) -> None:
        """Send as the bot of a tenant no longer."""
        if opening := self._opening.pop(tenant, None):
            await cancel_and_wait(opening)
        await self.runtime.remove(tenant)

    async def close(self) -> None:
        """Stop signing in."""
        await cancel_and_wait(*self._opening.values())


def courier_options(channel: str, settings: Any, lease: timedelta) -> CourierOptions:
    """Return what a channel sets itself: `callback_url` for delivery reports, `connections` for the attempts at once,
    `first_pause` and `attempts` for the back-off.
    """
    base_url = getattr(settings, "callback_url", None)
    usual = CourierOptions()
    return CourierOptions(
        lease=lease,
        report_url=base_url.rstrip("/") + channels()[channel].report_path if base_url else "",
        concurrency=getattr(settings, "connections", usual.concurrency),
        backoff=Backoff(
            first=getattr(settings, "first_pause", usual.backoff.first),
            attempts=getattr(settings, "attempts", usual.backoff.attempts),
        ),
        secrets=secrets_of(settings),
    )


async def deliver(
    runtime: Runtime, process: NotedProcess, stop: asyncio.Event, health_file: Path, *others: Coroutine[Any, Any, None]
) -> int:
    """Deliver until a stop is requested; with `others` beside. Raises StoreError."""
    account = runtime.only.account if runtime.only else ""
    parts = [touch_while_working(lambda: runtime.claims, health_file), note_balance(runtime.only, process), *others]
    beside = [asyncio.create_task(part) for part in (*parts, stop.wait())]
    beside[-1].add_done_callback(lambda _: runtime.stop())
    announce(channel=runtime.channel, account=account)
    process.runs(account=account)
    if account:
        process.answered(f"accepted as {account}")
    try:
        await runtime.run()
    finally:
        await cancel_and_wait(*beside)
    if runtime.halted:
        process.answered(str(runtime.halted), is_refused=True)
        process.ends(ProcessState.HALTED, str(runtime.halted))
        return OPERATOR_NEEDED
    return SUCCESS


async def test_account(couriers: Couriers, process: NotedProcess) -> None:
    """Note whether the provider accepts the account, and the balance."""
    try:
        account = await couriers.test()
        process.answered(f"accepted as {account}")
    except SetupError as error:
        process.answered(str(error), is_refused=True)


async def note_balance(courier: object, process: NotedProcess) -> None:
    """Note what is left on an account that is paid in advance. It is asked for again every ten minutes."""
    if not isinstance(courier, HasBalance):
        return
    while True:
        process.note(balance=courier.balance, low_balance=courier.low_balance)
        await asyncio.sleep(BALANCE_INTERVAL)
        with suppress(SetupError):  # the provider is away; an attempt shows it
            courier.balance = await courier.check()


COMMANDS: Mapping[str, Command] = {"courier": Command(declare, run)}
