"""The verb doctor: checks settings, data directory, server, clock and credentials, and prints how to repair each."""

import asyncio
import json
import shutil
import time
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta, tzinfo
from importlib.util import find_spec
from pathlib import Path

from cli.client.local_times import shown_moment
from cli.command import FAILURE, SUCCESS, Command, CommandFailed
from cli.commands.start.store_findings import Finding, check_named_groups, check_replication, check_sentinels, facts_of
from cli.processes.parts import now_ms, part_that_runs, read_note
from cli.services import people_sources
from cli.services.models import language_model, synthesis, transcription
from cli.services.sign_in import check_secret_key, open_identity_providers
from cli.services.store import redis_url
from cli.settings.parsing import read_sync_lines
from cli.settings.settings import Configuration, Settings, courier_module, load
from core.admission.api_keys import SCIM, ApiKeys
from core.directory import Directory
from core.directory.syncs import Syncs
from core.errors import DataMoved, LayoutUnknown, SetupError, ShardsDiffer, StoreRefuses, StoreUnavailable
from core.model.clock import from_ms
from core.model.durability import Durability
from core.model.history_key import DEFAULT_TENANT
from core.model.parts import PartState, faulty
from core.processes import ANSWERS, LOSS_REMEDY, ProcessRegister, accept_loss, last_loss, unanswered_bots
from core.redis.keys import layout_of_shards
from core.redis.keyspace_events import SETTING, ensure_notifications
from core.redis.refusals import grant
from core.redis.server_checks import check_channels, check_layout, check_settings, check_writes, notification_problem
from core.redis.store import Store
from core.sessions import Sessions
from core.sessions.sessions import PersonalKey
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
from providers.models import AiNotSetUp, LanguageModel, Synthesis, Transcription
from providers.sign_in.services import read_services
from scenarios.inspection.bots import BotReader

CLOCK_TOLERANCE = 1.0
"""Seconds between our clock and the server's. The server's clock decides when a delivery is due."""

MIN_FREE_BYTES = 2**30
KEY_ENDS_SOON = timedelta(days=14)
MOST_NAMED = 5
"""Keys that a line names."""


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
        yield Finding("up", None, f"was killed, or hangs, since {shown_moment(from_ms(note.beat), zone)}", "./ada up")
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
            yield Finding(what, True, service.identity)
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
        yield await check_personal_keys(store, configuration.settings.timezone)
        yield await check_webhooks(store)
        async for finding in check_syncs(store, configuration.settings.syncs, configuration.settings.timezone):
            yield finding
        async for finding in check_bots(store):
            yield finding
    finally:
        await store.close()


async def check_redundancy(store: Store, durability: Durability) -> AsyncIterator[Finding]:
    for check in (check_replication, check_sentinels):
        async for finding in check(store, durability):
            yield finding


async def check_people(store: Store, settings: Settings) -> AsyncIterator[Finding]:
    """Emit how users sign in to services and people to the console, and whom the settings name."""
    yield await check_sign_in(store, settings)
    async for finding in check_identity_providers(store, settings):
        yield finding
    async for finding in check_named_groups(store, settings):
        yield finding


async def check_notifications(store: Store) -> Finding:
    """Return whether sleeping couriers are woken. Sets the server's flags if they are missing, and reports it."""
    state = await ensure_notifications(store.command)
    if problem := notification_problem(state):
        return Finding(
            "wake-up", False, f"{problem.setting} is {problem.found or 'empty'}: {problem.why}", problem.correction
        )
    try:
        await check_channels(store)
    except (SetupError, StoreUnavailable) as error:
        return Finding("wake-up", False, str(error))
    if state.found is None:
        detail = f"{SETTING} is hidden from this user ({state.refusal}); it must contain K, g and x"
        return Finding("wake-up", None, detail, grant(store.address))
    if state.changed:
        return Finding(
            "wake-up", True, f"CHANGED: {state.changed}", "redis-cli CONFIG REWRITE, so that a restart keeps it"
        )
    return Finding("wake-up", True, f"{SETTING} is {state.found}")


async def check_version(store: Store) -> Finding:
    facts = facts_of(str(await store.command("INFO", "server")))
    name = facts.get("server_name", "redis")
    version = facts.get(f"{name}_version", facts.get("redis_version"))
    return Finding("redis", True, f"{name} {version}")


async def check_store_writes(store: Store) -> Finding:
    try:
        await check_writes(store)
    except StoreRefuses as fault:
        return Finding("writes", False, f"{fault.code}: {fault}")
    return Finding("writes", True, "the server takes writes")


async def check_data_layout(store: Store) -> Finding:
    try:
        await check_layout(store)
    except (DataMoved, LayoutUnknown, ShardsDiffer) as error:
        return Finding("layout", False, str(error))
    return Finding("layout", True, str(layout_of_shards(store.shards)))


async def check_loss(store: Store) -> Finding:
    if loss := await last_loss(store):
        return Finding("stored data", False, loss.sentence, LOSS_REMEDY)
    return Finding("stored data", True, "no loss was noticed")


async def check_clock(store: Store) -> Finding:
    """Return the difference between the two clocks, corrected by half of the round trip."""
    began = time.time()
    seconds, micros = map(int, await store.command("TIME"))
    difference = abs(seconds + micros / 1e6 - (began + time.time()) / 2)
    if difference > CLOCK_TOLERANCE:
        return Finding(
            "clock", False, f"the server's clock differs from ours by {difference:.1f} s", "synchronize both with NTP"
        )
    return Finding("clock", True, f"differs from the server's by {difference * 1000:.0f} ms")


async def check_syncs(store: Store, file: Path | None = None, zone: tzinfo = UTC) -> AsyncIterator[Finding]:
    """Emit what became of the last run of each source of people of the default tenant. `file`: ADA_SYNCS."""
    try:
        repeated = [words[0] for words in read_sync_lines(file)]
    except SetupError:  # a finding of check_sources
        repeated = []
    syncs = Syncs(store)
    keys = [one.name for one in await ApiKeys(store).list() if SCIM in one.scopes]
    if keys and find_spec("scim2_models") is None:
        detail = f"{', '.join(keys)} has a key, but scim2-models is not installed"
        yield Finding("scim", False, detail, "pip install 'ada[scim]'")
    sources = [one for one in await syncs.all(DEFAULT_TENANT) if one.last]
    missing = [one for one in repeated if one not in [source.source for source in sources]]
    for name in missing:
        yield Finding(f"sync {name}", None, "has not run yet; ./ada up repeats it (ADA_SYNCS)")
    if not sources and not missing:
        yield Finding("sync", None, "no source of people has run (./ada sync, ADA_SYNCS)")
    for one in sources:
        assert one.last
        if one.last.fault:
            again = "repair the source, then start it on the page Synchronisation, or repeat the command"
            remedy = "" if one.last.fault == "leaving" else again  # its sentence says what to do
            yield Finding(f"sync {one.source}", False, f"changed nothing: {one.last.detail or one.last.fault}", remedy)
        elif one.is_late(syncs.now()):
            since = shown_moment(from_ms(one.last.ended), zone)
            remedy = f"start ./ada sync {one.source} … --every again, or forget it on the page Synchronisation"
            yield Finding(f"sync {one.source}", False, f"the program is silent since {since}", remedy)
        else:
            again = f", again each {one.last.every // 60} min" if one.last.every else ""
            by = " by `./ada up`" if again and one.source in repeated else ""
            ended = shown_moment(from_ms(one.last.ended), zone)
            yield Finding(f"sync {one.source}", True, f"{one.last.place}, {ended}{again}{by}")


async def check_sign_in(store: Store, settings: Settings) -> Finding:
    """Return whether users can sign in to outside services, and jobs can use it. Makes no key."""
    if settings.sign_in is None:
        return Finding("sign-in", None, "not set up (ADA_SIGN_IN)")
    try:
        services = ", ".join(sorted(read_services(settings.sign_in)))
        await check_secret_key(store, settings)
    except SetupError as error:
        return Finding("sign-in", False, str(error))
    return Finding("sign-in", True, services)


async def check_identity_providers(store: Store, settings: Settings) -> AsyncIterator[Finding]:
    """Emit whether people can sign in to the console at each identity provider, and what is registered there."""
    try:
        providers = open_identity_providers(store, settings)
    except SetupError as error:
        yield Finding("identity providers", False, str(error))
        return
    if providers is None:
        yield Finding("identity providers", None, "none is set up (ADA_OIDC)")
        return
    for name in providers.titles:
        address = providers.redirect_uri(name)
        if fault := await providers.check(name):
            remedy = "check `issuer` in the file of ADA_OIDC, and that this machine reaches it; sessions go on"
            yield Finding(f"identity provider {name}", False, fault, remedy)
        else:
            logout = f"{address.removesuffix('/callback')}/logout"
            detail = f"answers; register there: redirect URI {address}, back-channel logout {logout}"
            yield Finding(f"identity provider {name}", True, detail)


async def check_personal_keys(store: Store, zone: tzinfo = UTC) -> Finding:
    """Return whose personal keys end soon: their programs are refused from that moment on."""
    sessions = Sessions(store, Directory(store), ApiKeys(store))
    soon, days = datetime.now(UTC) + KEY_ENDS_SOON, KEY_ENDS_SOON.days
    ending = sorted([one async for one in sessions.personal_keys(soon)], key=lambda one: one[2].expires_at)
    if not ending:
        return Finding("personal keys", True, f"none ends within {days} days")
    listed = ", ".join(_ending(*one, zone) for one in ending[:MOST_NAMED])
    more = f" and {len(ending) - MOST_NAMED} more" if ending[MOST_NAMED:] else ""
    remedy = "the person makes another one on its page of the console; ./ada key list shows all"
    return Finding("personal keys", None, f"end within {days} days: {listed}{more}", remedy)


def _ending(tenant: str, person: str, key: PersonalKey, zone: tzinfo) -> str:
    whose = person if tenant == DEFAULT_TENANT else f"{person} (tenant {tenant})"
    return f"{key.name} of {whose} on {key.expires_at.astimezone(zone):%Y-%m-%d}"


async def check_webhooks(store: Store) -> Finding:
    _, found = await stored_webhooks(store)
    disabled = [webhook.id for webhook in found if webhook.disabled]
    if not found:
        return Finding("webhooks", None, "there are none")
    if disabled:
        detail = f"disabled, because the receiver answered 410: {', '.join(disabled)}"
        return Finding("webhooks", None, detail, "./ada webhook replay ID, or ./ada webhook remove ID")
    return Finding("webhooks", True, str(len(found)))


async def check_bots(store: Store) -> AsyncIterator[Finding]:
    """Emit the bots of tenants, what of them has stopped while the others go on, and the channels in which no process
    answers what is received.
    """
    bots = await BotReader(store).list(None)
    now = int(time.time() * 1000) + store.clock_offset_ms
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
        unread = getattr(settings, "unread", "")
        also = f"; {unread}" if unread else ""
        if not sign_in:
            return Finding(channel, True, f"settings are complete (use --sign-in to try them){also}")
        directory = configuration.settings.data.absolute() / "couriers" / channel
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        courier = await courier_module(channel).open(settings, directory)
    except SetupError as error:
        return Finding(channel, False, str(error))
    await courier.close()
    balance, least = getattr(courier, "balance", None), getattr(settings, "low_balance", 0.0)
    if balance is None:
        return Finding(channel, True, f"signed in as {courier.account}{also}")
    detail = f"signed in as {courier.account}, balance {balance:.2f}"
    return Finding(channel, balance >= least or None, detail, "" if balance >= least else "the money is running out")


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


async def check_sources(file: Path | None, sign_in: bool) -> AsyncIterator[Finding]:
    """Emit whether each source of people of ADA_SYNCS can be read; with `sign_in` each is read whole, as by a run."""
    try:
        lines = read_sync_lines(file)
    except SetupError as fault:
        yield Finding("syncs", False, str(fault))
        return
    for words in lines:
        what = f"source {words[0]}"
        if not sign_in:
            yield Finding(what, True, "is named in ADA_SYNCS (use --sign-in to read it)")
            continue
        try:
            yield Finding(what, True, await people_sources.check(words))
        except CommandFailed as fault:
            yield Finding(what, False, str(fault).partition("\n")[0], "correct the source, or its line in ADA_SYNCS")


COMMANDS: Mapping[str, Command] = {"doctor": Command(declare, run)}
