"""The verb bot: one process that answers what people write in a channel.

`serve` puts what gateways and callbacks post into the queue; a bot that polls puts its updates there itself. With
ADA_SCENARIOS they are events, which `./ada scenarios` processes, and the bot only gets them. Exit codes: 0 after a
request to stop, 1 if the provider could not be reached at the start (a restart may help), 2 for wrong settings, 3 when
an operator is needed.
"""

import asyncio
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path

from bots.button_bot import ButtonBot, button_workers
from bots.services import BotServices
from bots.text_bot import TextBot
from cli.command import FAILURE, OPERATOR_NEEDED, SUCCESS, Command, CommandFailed
from cli.commands.parts.bots_of_folders import run_bots
from cli.processes.data_directory import prepare_data_directory, private_directory
from cli.processes.health import HEALTH_FILE, add_healthy_option, is_healthy
from cli.processes.noted_process import NotedProcess, noted_process
from cli.processes.startup import collect_garbage_less_often, configure_logging, run_with_restarts, stop_requested
from cli.processes.supervisor import announce
from cli.services.bots import open_bot_services
from cli.services.scenarios import max_age, open_ingress
from cli.services.store import open_store
from cli.settings.bot_folders import folder_of_bots
from cli.settings.secrets import receiver
from cli.settings.settings import Configuration, load
from core.errors import SetupError
from core.queue import Worker
from core.redis.cancel_and_wait import cancel_and_wait
from core.updates.bot_calls import BotCalls, Make
from couriers.channel import channels, receiving
from couriers.receiving.poller import Poller
from couriers.receiving.receiver import Receiver, open_receiver

Ready = Callable[..., None]
"""Says that the bot works, with what it announces."""
Answering = TextBot | ButtonBot | Worker
Run = Callable[[Configuration, BotServices, asyncio.Event, Ready], Awaitable[None]]
"""Runs a bot until a stop is requested."""


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("channel", choices=sorted(processes()), help="the channel in which people write")
    add_healthy_option(parser, "process of this bot")


def run(arguments: Namespace) -> int:
    configuration = load(may_receive=receiver(f"bot {arguments.channel}"))
    directory = configuration.settings.data.absolute() / "bots" / arguments.channel
    if arguments.healthy:
        return SUCCESS if is_healthy(directory / HEALTH_FILE) else FAILURE
    configure_logging(configuration.settings)
    prepare_data_directory(configuration.settings.data)
    private_directory(private_directory(directory.parent) / directory.name)
    return run_with_restarts(partial(run_bot, configuration, arguments.channel, directory / HEALTH_FILE))


async def run_bot(configuration: Configuration, channel: str, health_file: Path) -> int:
    async with (
        open_store(configuration, waits=True) as store,
        noted_process(store, "bot", channel, health_file, configuration.settings.data) as process,
        open_bot_services(store, configuration.settings) as services,
    ):
        stop = stop_requested()
        collect_garbage_less_often()
        run = run_of(channel, is_one_of_several=folder_of_bots(configuration.settings) is not None)
        await run(configuration, services, stop, lambda **facts: is_ready(process, **facts))
    return SUCCESS


def is_ready(process: NotedProcess, **facts: str) -> None:
    announce(**facts)
    process.runs(account=facts.get("account", ""))


async def run_telegram(configuration: Configuration, services: BotServices, stop: asyncio.Event, ready: Ready) -> None:
    """Run the bot of ADA_BOT_TOKEN. Raises SetupError, CommandFailed."""
    from bots.telegram.bot import open_bot
    from bots.telegram.dialogs import DIALOGS
    from bots.telegram.events import events_mode
    from bots.telegram.webhook import Webhook
    from couriers.telegram_bot.errors import BotTokenRefused

    settings = configuration.settings
    if not settings.bot_token:
        raise SetupError("ADA_BOT_TOKEN must be set")
    url, secret = settings.bot_webhook_url, settings.inbound_telegram_secret or ""
    webhook = Webhook(url, secret) if url else None
    mode = events_mode(max_age(settings)) if settings.scenarios else DIALOGS
    try:
        bot = await open_bot(settings.bot_token, settings.bot_api_url or "", services, webhook, mode)
    except SetupError as error:  # it may be an outage, so the bot is restarted
        raise CommandFailed(str(error)) from error
    stopping = asyncio.create_task(stop.wait())
    stopping.add_done_callback(lambda _: bot.stop())
    try:
        await bot.run(lambda: ready(bot="telegram", account=bot.account))
    except BotTokenRefused as refusal:
        raise CommandFailed(str(refusal), OPERATOR_NEEDED) from None
    finally:
        await cancel_and_wait(stopping)
        await bot.close()


async def run_receiver(
    channel: str, configuration: Configuration, services: BotServices, stop: asyncio.Event, ready: Ready
) -> None:
    """Receive what people write in a channel, and answer it; with ADA_SCENARIOS `./ada scenarios` answers, and the bot
    only receives and makes the calls of `core.updates.bot_calls`. What a provider posts goes to `serve`.
    """
    one = receiving()[channel]
    has_scenarios = configuration.settings.scenarios is not None
    ingress = open_ingress(services.core.store, services.core.client, configuration.settings)[channel]
    await ingress.open()
    receiver = open_receiver(one, configuration.channel(channel)) if one.receiver else None
    answering = await answer(channel, receiver, services, has_scenarios=has_scenarios)
    beside = []
    if receiver and receiver.source:
        beside.append(asyncio.create_task(Poller(services.core.store, receiver.source, ingress).run()))
    if receiver and receiver.keep_subscription:
        beside.append(asyncio.create_task(receiver.keep_subscription()))
    refusals = (receiver.refused,) if receiver else ()
    ready(bot=one.process)
    try:
        await work(answering, stop, *beside)
    except refusals as refusal:
        raise CommandFailed(str(refusal), OPERATOR_NEEDED) from None
    finally:
        if receiver:
            await receiver.close()


async def answer(
    channel: str, receiver: Receiver | None, services: BotServices, *, has_scenarios: bool
) -> Answering | None:
    """Return what answers people, or makes the calls of a bot beside scenarios; None if there is nothing to do."""
    if has_scenarios:
        return await calling(services, channel, receiver.make) if receiver and receiver.make else None
    if receiver and (module := receiving()[channel].replies):
        replies = import_module(module).Replies(receiver.client)
        return ButtonBot(await button_workers(services, channel, replies.send, replies.edit))
    return TextBot(services, channel)


async def calling(services: BotServices, channel: str, make: Make) -> Worker:
    """Return the work of a bot beside scenarios."""
    calls = BotCalls(services.core.client, services.tenant, channel)
    await calls.open()
    return calls.worker(make)


async def work(bot: Answering | None, stop: asyncio.Event, *beside: asyncio.Task[None]) -> None:
    """Run a bot until a stop is requested, or until a task beside it ends; raise what that task raises."""
    working = [asyncio.create_task(bot.run())] if bot else []
    stopping = asyncio.create_task(stop.wait())
    done, _ = await asyncio.wait({stopping, *working, *beside}, return_when=asyncio.FIRST_COMPLETED)
    await cancel_and_wait(stopping, *beside)
    if bot:
        bot.stop()
    await asyncio.gather(*working)
    for ended in done:
        ended.result()


def processes() -> Mapping[str, str]:
    """Return the channels by the names of their bots."""
    return {one.process: channel for channel, one in receiving().items()}


def run_of(process: str, *, is_one_of_several: bool) -> Run:
    """Return what runs a bot, or those of a folder of bots, whose SMS come from one gateway for all."""
    channel = processes()[process]
    if is_one_of_several and channels()[channel].is_per_bot:
        return partial(run_bots, channel)
    return run_telegram if process == "telegram" else partial(run_receiver, channel)


COMMANDS: Mapping[str, Command] = {"bot": Command(declare, run)}
