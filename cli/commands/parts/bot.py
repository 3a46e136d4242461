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
from pathlib import Path

from bots.button_bot import ButtonBot, button_workers
from bots.receiving.poller import Poller
from bots.services import BotServices
from bots.text_bot import TextBot
from cli.command import FAILURE, OPERATOR_NEEDED, SUCCESS, Command, CommandFailed
from cli.commands.parts.bots_of_folders import OPENERS, run_bots
from cli.processes.data_directory import prepare_data_directory, private_directory
from cli.processes.health import HEALTH_FILE, add_healthy_option, is_healthy
from cli.processes.noted_process import NotedProcess, noted_process
from cli.processes.startup import collect_garbage_less_often, configure_logging, run_with_restarts, stop_requested
from cli.processes.supervisor import announce
from cli.services.bots import open_bot_services
from cli.services.scenarios import max_age, open_ingress
from cli.services.store import open_store
from cli.settings.bot_folders import has_many
from cli.settings.secrets import receiver
from cli.settings.settings import Configuration, load
from core.errors import SetupError
from core.queue import Worker
from core.redis.cancel_and_wait import cancel_and_wait
from core.updates.bot_calls import BotCalls, Make
from providers import max as max_provider
from providers import sms, vk

Ready = Callable[..., None]
"""Says that the bot works, with what it announces."""
Run = Callable[[Configuration, BotServices, asyncio.Event, Ready], Awaitable[None]]
"""Runs a bot until a stop is requested."""


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("channel", choices=sorted(BOTS), help="the channel in which people write")
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
        run = run_several(channel) if has_many(configuration.settings) else BOTS[channel]
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
    from providers.telegram_bot.errors import TokenRefused

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
    except TokenRefused as refusal:
        raise CommandFailed(str(refusal), OPERATOR_NEEDED) from None
    finally:
        await cancel_and_wait(stopping)
        await bot.close()


async def run_sms(configuration: Configuration, services: BotServices, stop: asyncio.Event, ready: Ready) -> None:
    """Answer the SMS that a gateway has posted to `serve`. With ADA_SCENARIOS `./ada scenarios` does that."""
    await open_ingress(services.core.store, services.core.client, configuration.settings)[sms.CHANNEL].open()
    ready(bot="sms")
    if configuration.settings.scenarios:
        await stop.wait()
    else:
        await work(TextBot(services, sms.CHANNEL), stop)


async def run_vk(configuration: Configuration, services: BotServices, stop: asyncio.Event, ready: Ready) -> None:
    """Answer what people write to the VK community; with ADA_SCENARIOS it only makes the calls of
    `core.updates.bot_calls`. With ADA_VK_LONG_POLL it polls; callbacks go to `serve`.
    """
    from bots.vk.calls import VkCalls
    from bots.vk.long_poll import LongPoll
    from providers.vk.client import Client
    from providers.vk.errors import TokenRefused

    ingress = open_ingress(services.core.store, services.core.client, configuration.settings)[vk.CHANNEL]
    await ingress.open()
    settings = configuration.channel("vk")
    client = Client(settings.token, settings.api_url)
    has_scenarios = configuration.settings.scenarios
    bot = await calling(services, vk.CHANNEL, VkCalls(client).make) if has_scenarios else TextBot(services, vk.CHANNEL)
    poller = Poller(services.core.store, LongPoll(client), ingress)
    polls = [asyncio.create_task(poller.run())] if settings.long_poll else []
    ready(bot="vk")
    try:
        await work(bot, stop, *polls)
    except TokenRefused as refusal:
        raise CommandFailed(str(refusal), OPERATOR_NEEDED) from None
    finally:
        await client.close()


async def run_max(configuration: Configuration, services: BotServices, stop: asyncio.Event, ready: Ready) -> None:
    """Answer what people write to the bot in MAX; with ADA_SCENARIOS it only gets the updates and shows
    typing. It polls, or keeps the subscription of ADA_MAX_WEBHOOK_URL, whose updates go to `serve`.
    """
    from bots.max.calls import MaxCalls
    from bots.max.long_poll import LongPoll
    from bots.max.sending import Replies
    from bots.max.webhook import Webhook
    from providers.max.client import Client
    from providers.max.errors import TokenRefused

    common, settings = configuration.settings, configuration.channel("max")
    webhook = Webhook(common.max_webhook_url, common.max_webhook_secret or "") if common.max_webhook_url else None
    ingress = open_ingress(services.core.store, services.core.client, common)[max_provider.CHANNEL]
    await ingress.open()
    client = Client(settings.token, settings.api_url, settings.timeout, settings.ca)
    bot: ButtonBot | Worker
    if common.scenarios:
        bot = await calling(services, max_provider.CHANNEL, MaxCalls(client).make)
    else:
        replies = Replies(client)
        bot = ButtonBot(await button_workers(services, max_provider.CHANNEL, replies.send, replies.edit))
    getting = webhook.keep(client) if webhook else Poller(services.core.store, LongPoll(client), ingress).run()
    ready(bot="max")
    try:
        await work(bot, stop, asyncio.create_task(getting))
    except TokenRefused as refusal:
        raise CommandFailed(str(refusal), OPERATOR_NEEDED) from None
    finally:
        await client.close()


async def calling(services: BotServices, channel: str, make: Make) -> Worker:
    """Return the work of a bot beside scenarios."""
    calls = BotCalls(services.core.client, services.tenant, channel)
    await calls.open()
    return calls.worker(make)


async def work(bot: TextBot | ButtonBot | Worker, stop: asyncio.Event, *beside: asyncio.Task[None]) -> None:
    """Run a bot until a stop is requested, or until a task beside it ends; raise what that task raises."""
    working = asyncio.create_task(bot.run())
    stopping = asyncio.create_task(stop.wait())
    done, _ = await asyncio.wait({stopping, working, *beside}, return_when=asyncio.FIRST_COMPLETED)
    await cancel_and_wait(stopping, *beside)
    bot.stop()
    await working
    for ended in done:
        ended.result()


def run_several(channel: str) -> Run:
    """Return what runs the bots of a folder of bots in a channel; SMS come from one gateway for all."""
    several = {one.removesuffix("-bot"): one for one in OPENERS}
    return partial(run_bots, several[channel]) if channel in several else BOTS[channel]


BOTS: Mapping[str, Run] = {"telegram": run_telegram, "sms": run_sms, "vk": run_vk, "max": run_max}

COMMANDS: Mapping[str, Command] = {"bot": Command(declare, run)}
