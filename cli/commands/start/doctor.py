"""The verb doctor: checks settings, data directory, server, clock and credentials, and prints how to repair each."""

import asyncio
import json
import re
import shutil
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import timedelta, tzinfo
from importlib.util import find_spec
from pathlib import Path

from cli.client.format_matters import format_matter
from cli.client.local_times import shown_moment
from cli.command import FAILURE, SUCCESS, Command
from cli.commands.start.people_findings import (
    check_first_key,
    check_people,
    check_personal_keys,
    check_sources,
    check_syncs,
)
from cli.commands.start.store_findings import (
    Finding,
    check_clock,
    check_data_layout,
    check_loss,
    check_notifications,
    check_replication,
    check_sentinels,
    check_store_writes,
    check_version,
)
from cli.processes.parts import now_ms, part_that_runs, read_note
from cli.services.accounts import is_courier_at_work
from cli.services.models import language_model, synthesis, transcription
from cli.services.store import redis_url
from cli.settings.settings import Configuration, Settings, courier_module, load
from core.errors import SetupError, StoreUnavailable
from core.model.clock import from_ms
from core.model.durability import Durability
from core.model.parts import PartState, faulty
from core.monitoring.overview import URGENT, MatterKind, matters_of
from core.processes import ANSWERS, ProcessRegister, accept_loss, unanswered_bots
from core.redis.server_checks import check_settings
from core.redis.store import Store
from core.webhooks.registry import stored_webhooks
from couriers.channel import Channel, channels
from couriers.email.receive import (
    ACCOUNT_REMEDY,
    CERTIFICATE_REMEDY,
    ImapServer,
    Mailbox,
    MailboxFault,
    MailboxRefused,
    MailboxUntrusted,
)
from couriers.sending.interface import HasBalance
from providers.models import AiNotSetUp, LanguageModel, Synthesis, Transcription
from scenarios.inspection.bots import BotReader

MIN_FREE_BYTES = 2**30
_LOGIN = re.compile(r"//[^/\s]*@")
"""A name and a password in an address."""

_LINES_OF_THEIR_OWN = frozenset(
    {
        MatterKind.DATA_LOST,
        MatterKind.NOT_RUNNING,
        MatterKind.UNANSWERED,
        MatterKind.SERVER_SETTING,
        MatterKind.SYNC,
    }
)


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("--sign-in", action="store_true", help="also sign in at the providers, as the couriers do")
    parser.add_argument("--accept-loss", action="store_true", help="show a loss of the store's data no longer")


def run(arguments: Namespace) -> int:
    return asyncio.run(print_findings(load(), arguments))


async def forget_loss(configuration: Configuration) -> None:
    """Show the last loss of data no longer. Raises SetupError, StoreUnavailable."""
    store = await Store.open(redis_url(configuration.settings), configuration.settings.shards)
    try:
        await accept_loss(store)
    finally:
        await store.close()


async def print_findings(configuration: Configuration, arguments: Namespace) -> int:
    if arguments.accept_loss:
        await forget_loss(configuration)
    all_good = True
    async for finding in run_checks(configuration, arguments.sign_in):
        print(json.dumps(asdict(finding), ensure_ascii=False) if arguments.json else finding, flush=True)
        all_good = all_good and finding.is_good is not False
    return SUCCESS if all_good else FAILURE


async def run_checks(configuration: Configuration, sign_in: bool) -> AsyncIterator[Finding]:
    yield Finding("settings", True, f"{len(configuration.raw)} set")
    yield check_retention(configuration.settings)
    yield check_data(configuration.settings.data.absolute())
    for finding in check_parts(configuration.settings.data.absolute(), configuration.settings.timezone):
        yield finding
    async for finding in check_server(configuration):
        yield finding
    for channel in channels():
        yield await check_channel(configuration, channel, sign_in)
    yield await check_mailbox(configuration.settings, sign_in)
    async for finding in check_sources(configuration.settings.syncs, sign_in):
        yield finding
    for finding in check_models(configuration.settings):
        yield finding


def check_retention(settings: Settings) -> Finding:
    """Return for how long what people have written is kept."""
    answers = settings.answers_retention or settings.retention
    kept = (
        f"histories {_days(settings.retention)}, answers {_days(answers)}, threads {_days(settings.threads_retention)}"
    )
    if settings.threads_retention < max(settings.retention, answers):
        return Finding("retention", None, f"threads end before the histories of their messages: {kept}")
    return Finding("retention", True, f"{kept} (ADA_RETENTION, ADA_ANSWERS_RETENTION, ADA_THREADS_RETENTION)")


def _days(duration: timedelta) -> str:
    return f"{duration / timedelta(days=1):g} d"


def check_data(data: Path) -> Finding:
    try:
        data.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(data).free
    except OSError as error:
        return Finding("data", False, f"{data} cannot be used: {error}", "make it writable, or set ADA_DATA")
    if free < MIN_FREE_BYTES:
        return Finding("data", False, f"{data} has {free / 2**20:.0f} MiB free", "free some space, or set ADA_DATA")
    return Finding("data", True, f"{data}, {free / 2**30:.0f} GiB free")


def check_parts(data: Path, zone: tzinfo) -> Iterator[Finding]:
    """Emit whether the parts of `./ada up` run as they should. It need not run: containers run the parts one by one."""
    note = read_note(data)
    if note is None:
        yield Finding("up", None, "does not run with this ADA_DATA")
    elif not note.is_up:
        yield Finding("up", False, f"was killed, or hangs, since {shown_moment(from_ms(note.beat), zone)}", "./ada up")
    elif found := faulty(note.parts, now_ms()):
        for part in found:
            again = "then stop `./ada up` and start it again" if part.state is PartState.STOPPED else "it starts again"
            detail = f"{part.name} {part.fault} (since {shown_moment(from_ms(part.since), zone)})"
            yield Finding("up", False, detail, f"repair the cause; {again}")
    else:
        yield Finding("up", True, f"its {len(note.parts)} parts run")


def check_models(settings: Settings) -> Iterator[Finding]:
    """Emit whether scenarios can ask a language model, speak and listen. What is not set up is no fault (C-86)."""
    opened: Mapping[str, Callable[[Settings], LanguageModel | Synthesis | Transcription]] = {
        "model": language_model,
        "to_speech": synthesis,
        "from_speech": transcription,
    }
    for what, open_service in opened.items():
        try:
            service = open_service(settings)
            service.check()
            yield Finding(what, True, _LOGIN.sub("//", service.identity))
        except AiNotSetUp as error:
            yield Finding(what, None, str(error))
        except SetupError as error:
            yield Finding(what, False, str(error))


async def check_server(configuration: Configuration) -> AsyncIterator[Finding]:
    try:
        url = redis_url(configuration.settings)
    except SetupError as error:
        yield Finding("redis", None, str(error))
        return
    try:
        store = await Store.open(url, configuration.settings.shards)
    except (SetupError, StoreUnavailable) as error:
        yield Finding("redis", False, str(error))
        return
    try:
        yield await check_version(store)
        for problem in await check_settings(store):
            text = f"{problem.setting} is {problem.found or 'empty'}, not {problem.wanted}: {problem.why}"
            yield Finding("redis", False if problem.fatal else None, text, problem.correction)
        yield await check_store_writes(store)
        async for finding in check_redundancy(store, configuration.settings.durability):
            yield finding
        yield await check_notifications(store)
        yield await check_data_layout(store)
        yield await check_loss(store)
        yield await check_clock(store)
        async for finding in check_people(store, configuration.settings):
            yield finding
        yield await check_first_key(store, configuration.settings)
        yield await check_personal_keys(store, configuration.settings.timezone)
        yield await check_webhooks(store)
        async for finding in check_syncs(store, configuration.settings.syncs, configuration.settings.timezone):
            yield finding
        async for finding in check_work(store, configuration.settings.timezone):
            yield finding
    finally:
        await store.close()


async def check_redundancy(store: Store, durability: Durability) -> AsyncIterator[Finding]:
    for check in (check_replication, check_sentinels):
        async for finding in check(store, durability):
            yield finding


async def check_webhooks(store: Store) -> Finding:
    _, found = await stored_webhooks(store)
    return Finding("webhooks", True, str(len(found))) if found else Finding("webhooks", None, "there are none")


async def check_matters(store: Store, zone: tzinfo) -> AsyncIterator[Finding]:
    """Emit what needs attention besides that for which doctor has lines of its own."""
    for matter in await matters_of(store):
        if (kind := matter["kind"]) not in _LINES_OF_THEIR_OWN:
            is_good = False if kind in URGENT else None
            yield Finding(kind, is_good, format_matter(matter, zone), matter.get("command", ""))


async def check_work(store: Store, zone: tzinfo) -> AsyncIterator[Finding]:
    """Emit what the bots do, and what else needs attention."""
    async for finding in check_bots(store):
        yield finding
    async for finding in check_accounts(store):
        yield finding
    async for finding in check_matters(store, zone):
        yield finding


async def check_accounts(store: Store) -> AsyncIterator[Finding]:
    """Emit each channel that couriers send through as different accounts: an Ada too many works on this server."""
    accounts: dict[str, dict[str, str]] = {}
    for one in await ProcessRegister(store).list(store.now_ms()):
        if one.account and is_courier_at_work(one):
            accounts.setdefault(one.name, {})[one.account] = f"{one.account} ({one.host}, process {one.pid})"
    for channel, found in accounts.items():
        if len(found) > 1:
            detail = f"messages go out by chance as {' or as '.join(found.values())}"
            yield Finding(channel, False, detail, "stop one of them, or give it a server of its own: ADA_REDIS_URL")


async def check_bots(store: Store) -> AsyncIterator[Finding]:
    """Emit the bots of tenants, what of them has stopped while the others go on, and the channels in which no process
    answers what is received.
    """
    bots = await BotReader(store).list(None)
    now = store.now_ms()
    for name in unanswered_bots(await ProcessRegister(store).list(now)):
        detail = "receives what people write, and no process of the scenarios answers"
        yield Finding(f"bot {name}", False, detail, ANSWERS)
    if not bots:
        yield Finding("bots", None, "none has run yet (./ada scenarios)")
    for bot in bots:
        for fault in bot.stopped:
            yield Finding(f"bot of {bot.tenant}", False, f"{fault.part} has stopped: {fault.reason}")
    if working := [bot.tenant for bot in bots if not bot.stopped]:
        yield Finding("bots", True, f"{len(working)}: {', '.join(working[:20])}")


async def check_channel(configuration: Configuration, channel: str, sign_in: bool) -> Finding:
    if not configuration.has_channel(channel):
        if part_that_runs(configuration.settings.data, f"courier {channel}"):
            return Finding(channel, True, "runs under `./ada up`, with the settings that `up` was given")
        return Finding(channel, None, "not set up" + _unused(configuration, channels()[channel]))
    library = channels()[channel].library
    if library and find_spec(library) is None:
        return Finding(channel, False, f"the library {library} is missing", f"pip install 'ada[{channel}]'")
    try:
        settings = configuration.channel(channel)
        if not sign_in:
            return Finding(channel, True, "settings are complete (use --sign-in to try them)")
        directory = configuration.settings.data.absolute() / "couriers" / channel
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        courier = await courier_module(channel).open(settings, directory)
    except SetupError as error:
        return Finding(channel, False, str(error))
    await courier.close()
    account = courier.account
    if not isinstance(courier, HasBalance) or courier.balance is None:
        return Finding(channel, True, f"signed in as {account}")
    detail = f"signed in as {account}, balance {courier.balance:.2f}"
    is_low = courier.balance < courier.low_balance
    return Finding(channel, None if is_low else True, detail, "the money is running out" if is_low else "")


def _unused(configuration: Configuration, channel: Channel) -> str:
    """Return which settings do nothing because the account is missing, as the end of a sentence, or ""."""
    unused = sorted(configuration.raw.keys() & channel.no_account)
    account = ", ".join(one for one in channel.account_settings or (channel.account,) if one not in unused)
    return f"; without {account} nothing is done with {', '.join(unused)}" if unused else ""


async def check_mailbox(settings: Settings, sign_in: bool) -> Finding:
    """Return whether replies by mail can be received."""
    if settings.inbound_mail is None:
        return Finding("mail replies", None, "not set up (ADA_INBOUND_MAIL)")
    if settings.imap_url is None:
        ways = {
            "are posted to /v1/inbound/mail": settings.inbound_mail_secret,
            f"come to {settings.lmtp}": settings.lmtp,
        }
        if found := " and ".join(way for way, is_set in ways.items() if is_set):
            return Finding("mail replies", True, found)
        remedy = "set ADA_IMAP_URL, ADA_LMTP or ADA_INBOUND_MAIL_SECRET"
        return Finding("mail replies", False, "no mail is received", remedy)
    try:
        server = ImapServer.parse(settings.imap_url, settings.smtp_ca)
        if not sign_in:
            return Finding("mail replies", True, "ADA_IMAP_URL is complete (use --sign-in to try it)")
        mails = await Mailbox(server).check()
    except MailboxFault as fault:
        remedies = {MailboxRefused: ACCOUNT_REMEDY, MailboxUntrusted: CERTIFICATE_REMEDY}
        remedy = remedies.get(type(fault), "check the name, the port and imaps:// in ADA_IMAP_URL")
        return Finding("mail replies", False, str(fault), remedy)
    except SetupError as fault:
        return Finding("mail replies", False, str(fault))
    return Finding("mail replies", True, f"signed in as {server.account}, mails there: {mails}")


COMMANDS: Mapping[str, Command] = {"doctor": Command(declare, run)}
