"""The verb bot: one process that receives what people write in a channel. With a folder of bots in ADA_SCENARIOS it is
one for all bots that have an account in the channel; they come and go with their folders.

`serve` puts what gateways and callbacks post into the queue; a bot that polls puts its updates there itself. They are
events, which `./ada scenarios` answers. Exit codes: 0 after a request to stop, 1 if the provider could not be reached
at the start (a restart may help), 2 for wrong settings, 3 when an operator is needed.
"""

import asyncio
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from cli.command import FAILURE, OPERATOR_NEEDED, SUCCESS, Command, CommandFailed
from cli.processes.bot_folders import BotFolders
from cli.processes.data_directory import prepare_data_directory, private_directory
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
)
from cli.processes.supervisor import announce
from cli.services.accounts import ConsoleAccounts
from cli.services.core import sending_policy_of
from cli.services.scenarios import max_age_of
from cli.services.store import open_store
from cli.settings.bot_folders import BotFolder, read_receivers
from cli.settings.secrets import BOT, receiver
from cli.settings.settings import Configuration, load
from core.errors import SetupError
from core.redis.cancel_and_wait import cancel_and_wait
from core.services import Services, open_services
from core.threads.files import ThreadFiles, files_worker, open_files_tube
from core.updates.bot_calls import BotCalls, calls_tube, calls_worker
from core.updates.ingress import Ingress
from core.uploads import MiB, Uploads
from couriers.channel import receiving
from couriers.inbound import events_ingress, gathering
from couriers.receiving.receiver import AccountRefused, Part, Receiver, Receivers, open_receiver


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("channel", choices=sorted(processes()), help="the channel in which people write")
    add_healthy_option(parser, "process of this bot")


def run(arguments: Namespace) -> int:
    configuration = load(may_receive=receiver(f"bot {arguments.channel}"))
    directory = configuration.settings.data.absolute() / "bots" / arguments.channel
    if arguments.healthy:
        return SUCCESS if is_healthy(directory / HEALTH_FILE) else FAILURE
    if runs_under_up(configuration, processes()[arguments.channel], f"bot {arguments.channel}"):
        return start_by_up(configuration.settings.data, f"bot {arguments.channel}")
    configure_logging(configuration.settings)
    prepare_data_directory(configuration.settings.data)
    private_directory(private_directory(directory.parent) / directory.name)
    return run_with_restarts(partial(run_bot, configuration, arguments.channel, directory / HEALTH_FILE))


async def run_bot(configuration: Configuration, process: str, health_file: Path) -> int:
    channel = processes()[process]
    async with (
        open_store(configuration, waits=True) as store,
        noted_process(store, "bot", process, health_file, configuration.settings.data) as noted,
        open_services(store, sending_policy_of(configuration.settings)) as core,
    ):
        stop = stop_requested()
        accounts = ConsoleAccounts(store, f"{BOT}{process}")
        configuration = await accounts.added_to(configuration)
        noted.has_old_settings = accounts.have_changed
        collect_garbage_less_often()
        bots = ReceivingBots(configuration, channel, core)
        await bots.run(stop, lambda **facts: is_ready(noted, **facts))
    return SUCCESS


def is_ready(process: NotedProcess, **facts: str) -> None:
    announce(**facts)
    process.runs(account=facts.get("account", ""))


class ReceivingBots:
    """The bots of a channel in this process: that of the settings, or those of the folders of bots. They get what
    people write, fetch its files, and make the calls of `core.updates.bot_calls`. What a provider posts goes to
    `serve`.
    """

    def __init__(self, configuration: Configuration, channel: str, core: Services) -> None:
        self._configuration = configuration
        self._channel = channel
        self._receiving = receiving()[channel]
        self._store, self._client = core.store, core.client
        read = partial(read_receivers, channel)
        name = f"{BOT}{self._receiving.process}"
        self._folders = BotFolders(configuration, self._store, name, self._start, self._stop, read)
        self._are_several = not any(bot.is_only for bot in read(configuration).values())
        self._receivers = Receivers(self._store, self._stopped, f"all in {channel}" if self._are_several else "")
        self._only: Receiver | None = None
        self._account = ""

    async def run(self, stop: asyncio.Event, ready: Callable[..., None]) -> None:
        """Work until a stop is requested. Raises SetupError, StoreError; CommandFailed if the only bot cannot go on."""
        if self._are_several:
            self._refuse_webhooks()
        try:
            await self._folders.check()
            parts = await self._parts()
            gatherer = gathering(self._store, self._client, "").worker if self._receiving.gathers else None
            if gatherer and self._only and not self._only.source:  # the API gets the updates
                parts, gatherer = [*parts, gatherer()], None
            following, stopping = asyncio.create_task(self._folders.keep()), asyncio.create_task(stop.wait())
            stopping.add_done_callback(lambda _: self._receivers.stop())
            facts = {"bot": self._receiving.process, **({"account": self._account} if self._account else {})}
            try:
                await self._receivers.run(parts, lambda: ready(**facts), gatherer)
            finally:
                await cancel_and_wait(following, stopping)
        finally:
            await self._receivers.close()

    async def _start(self, bot: BotFolder) -> None:
        """Get the updates of a bot from then on. Raises SetupError; CommandFailed if the provider cannot be reached, or
        refuses the only bot: that may be an outage, so the process is restarted.
        """
        if not bot.has_account(self._channel):
            return
        ingress = await asyncio.to_thread(self._ingress, bot)
        await ingress.open()
        if not self._receiving.receiver:
            return
        settings = bot.configuration.channel(self._channel)
        receiver = open_receiver(self._receiving, settings, polls=not bot.is_only)
        if bot.is_only:
            self._only = receiver
            self._account = await _begun(receiver)
        self._receivers.add(bot.tenant, receiver, ingress)

    def _ingress(self, bot: BotFolder) -> Ingress:
        """Return the way in of a bot's updates. Raises SetupError."""
        max_age = max_age_of(bot.folder)
        return events_ingress(self._store, self._client, bot.tenant, max_age)[self._channel]

    def _refuse_webhooks(self) -> None:
        """Raise SetupError if the providers shall post updates."""
        urls = [one.webhook.url for one in receiving().values() if one.webhook]
        if found := [url for url in urls if url in self._configuration.raw]:
            raise SetupError(f"several bots are polled: remove {' and '.join(found)}")

    async def _stop(self, tenant: str) -> None:
        """Get the updates of a bot no longer."""
        await self._receivers.remove(tenant)

    async def _stopped(self, tenant: str, fault: Exception) -> None:
        """Note that the bot of a tenant gets no updates any more; if it is the only one, end the process."""
        if self._only:
            if isinstance(fault, AccountRefused):
                raise CommandFailed(str(fault), OPERATOR_NEEDED) from None
            raise fault
        is_refused = isinstance(fault, AccountRefused)
        reason = str(fault) if is_refused else f"getting its updates failed ({type(fault).__name__})"
        await self._folders.note(tenant, reason)

    async def _parts(self) -> Sequence[Part]:
        """Return what makes the calls of the bots, and fetches files for them."""
        if not self._receiving.makes_calls:
            return []
        await BotCalls(self._client, "", self._channel).open()
        await open_files_tube(self._client, self._channel)
        uploads = Uploads(self._store, self._configuration.settings.files_total_mb * MiB)
        files = ThreadFiles(self._store, self._client, uploads)
        return [
            calls_worker(self._client, calls_tube(self._channel), self._receivers.makers),
            files_worker(self._client, self._channel, self._receivers.fetchers, files),
        ]


async def _begun(receiver: Receiver) -> str:
    """Check the account; return its name, "" if the provider is not asked. Raises CommandFailed."""
    try:
        return await receiver.begin() if receiver.begin else ""
    except SetupError as error:
        await receiver.close()
        raise CommandFailed(str(error)) from error


def processes() -> Mapping[str, str]:
    """Return the channels by the names of their bots."""
    return {one.process: channel for channel, one in receiving().items()}


COMMANDS: Mapping[str, Command] = {"bot": Command(declare, run)}
