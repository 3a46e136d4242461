"""The services of one process of the API, and the work that it does beside requests."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial

from cli.processes.noted_process import NotedProcess
from cli.processes.parts import start_verb
from cli.processes.startup import cannot_listen
from cli.services.accounts import AccountWriter, ConsoleAccounts
from cli.services.core import open_linking, open_sign_in_codes, sending_policy_of
from cli.services.scenarios import known_secrets, open_ingress
from cli.services.sign_in import open_identity_providers, open_sign_in
from cli.settings.bot_folders import bot_folder, tenants_of_bots
from cli.settings.settings import Configuration, Settings
from core.admission.actions import ActionLog
from core.admission.api_keys import REPLACE_FIRST_KEY, ApiKeys
from core.admission.idempotency import Idempotency
from core.deliveries.received import Choices, ReceivedMessages
from core.directory import Directory
from core.directory.importing import Importing
from core.directory.offices import OfficeState, state_of_office, unread_office
from core.errors import SetupError
from core.monitoring import Recorder
from core.orders.series import SeriesSender
from core.processes import InstallationMark
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.store import Store
from core.services import Services, open_services
from core.sessions import Sessions, SignInLinks
from core.threads import ReplyWorker
from core.threads.mailed_replies import MailedReplies, MailResult
from core.updates.answer_worker import AnswerWorker
from core.updates.events import Events
from core.updates.ingress import Ingress
from core.uploads import Uploads
from core.webhooks.http_client import WebhookClient
from core.webhooks.registry import Webhooks
from core.webhooks.runtime import WebhookRuntime
from couriers.channel import mailed_channel
from couriers.email.receive import ImapServer, LmtpServer, Mailbox
from couriers.receiving.poller import Poller, PollerLease
from delivery.api.deliveries.series import order_of
from delivery.http.context import ApiServices
from delivery.http.options import MiB, Options
from scenarios.inspection.bots import BotReader
from scenarios.inspection.runs import RunReader
from scenarios.stores.forms import Forms

log = logging.getLogger(__name__)

RESTART_PAUSE = 1.0
SHUTDOWN_TIMEOUT = 3.0
"""Seconds that requests in progress have at the end; streams end at once."""
POSITION_KEPT = timedelta(days=90)
"""How long it is noted up to which mail a mailbox was read."""


@asynccontextmanager
async def open_accounted_services(
    store: Store, configuration: Configuration, process: NotedProcess, options: Options
) -> AsyncIterator[ApiServices]:
    """Open the services with the accounts of the console. Without the key of these the API runs, so that they can be
    set again.
    """
    accounts, settings = ConsoleAccounts(store, "serve"), configuration.settings
    process.has_old_settings = accounts.have_changed
    try:
        settings = (await accounts.added_to(configuration)).settings
    except SetupError as fault:
        log.error("%s", fault)
    async with open_api_services(store, settings, process.mark, options, known_secrets(configuration)) as services:
        yield services


@asynccontextmanager
async def open_api_services(
    store: Store, settings: Settings, mark: InstallationMark, options: Options, secrets: Mapping[str, str]
) -> AsyncIterator[ApiServices]:
    """Open the services of one process, and create the API key that is set."""
    api_keys = ApiKeys(store)
    if settings.api_key and await api_keys.ensure(settings.api_key) is None:
        log.warning("the first API key was revoked: requests with it are refused. To replace it: %s", REPLACE_FIRST_KEY)
    async with (
        open_services(store, sending_policy_of(settings)) as core,
        open_linking(store, core.directory, settings) as linking,
        open_sign_in_codes(store, core.directory, settings) as sign_in_codes,
        sending_webhooks(core, settings) as webhooks,
        recovering_imports(core) as importing,
        background_work(core, settings, options, webhooks),
    ):
        yield ApiServices(
            core=core,
            mark=mark,
            api_keys=api_keys,
            idempotency=Idempotency(store),
            sessions=Sessions(store, core.directory, api_keys),
            actions=ActionLog(store),
            sign_in_codes=sign_in_codes,
            sign_in_links=SignInLinks(store),
            importing=importing,
            linking=linking,
            webhooks=webhooks,
            uploads=Uploads(store, settings.files_total_mb * MiB),
            ingress=await opened_ingress(core, settings),
            events=partial(events_of, core, settings),
            runs=RunReader(store, secrets),
            bots=BotReader(store, secrets),
            forms=Forms(store),
            sign_in=await open_sign_in(store, settings),
            identity_providers=open_identity_providers(store, settings),
            accounts=AccountWriter(store, settings),
            start_verb=partial(start_verb, settings.data),
        )


@asynccontextmanager
async def background_work(
    core: Services, settings: Settings, options: Options, webhooks: Webhooks
) -> AsyncIterator[None]:
    """Record figures, count presses, pass on replies and send series beside the API."""
    replies = ReplyWorker(
        *(core.store, core.client, core.directory, core.threads, core.relay),
        office=settings.office or "",
        webhooks=webhooks,
    )
    await log_unread_offices(core.directory, settings)
    series = SeriesSender(core.client, core.store, core.sending, core.directory, partial(order_of, options=options))
    async with (
        recording_figures(core),
        working(AnswerWorker(core.store, core.client, sending_policy_of(settings).quiet_hours)),
        working(replies),
        working(series),
    ):
        yield


@asynccontextmanager
async def sending_webhooks(core: Services, settings: Settings) -> AsyncIterator[Webhooks]:
    """Yield the registry of webhooks, and send them beside the API."""
    client = WebhookClient(allow_private=settings.webhook_allow_private)
    webhooks = Webhooks(core.store, core.queue, client)
    runtime = WebhookRuntime(core.store, webhooks, client)
    sending = asyncio.create_task(send_webhooks(runtime), name="webhooks")
    try:
        yield webhooks
    finally:
        runtime.stop()
        await asyncio.wait([sending], timeout=SHUTDOWN_TIMEOUT)
        await cancel_and_wait(sending)
        await client.close()


@asynccontextmanager
async def recovering_imports(core: Services) -> AsyncIterator[Importing]:
    """Yield the import of files, and recover imports whose process has ended beside the API."""
    importing = Importing(core.store, core.directory)
    recovering = asyncio.create_task(importing.keep_recovering(), name="import recovery")
    try:
        yield importing
    finally:
        await cancel_and_wait(recovering)


@asynccontextmanager
async def recording_figures(core: Services) -> AsyncIterator[None]:
    recording = asyncio.create_task(Recorder(core.store, core.queue).run(), name="figures")
    try:
        yield
    finally:
        await cancel_and_wait(recording)


@asynccontextmanager
async def receiving_mails(
    services: ApiServices, settings: Settings, count: Callable[[MailResult], None], *, share_port: bool
) -> AsyncIterator[None]:
    """Read the mailbox of ADA_IMAP_URL and listen on ADA_LMTP beside the API. Raises SetupError; CommandFailed if the
    port is taken.
    """
    core = services.core
    replies = MailedReplies(
        *(core.store, core.client, core.directory, services.uploads),
        *(mailed_channel(), settings.inbound_mail or "", count),
    )
    async with AsyncExitStack() as ways:
        if settings.imap_url:
            server = ImapServer.parse(settings.imap_url, settings.smtp_ca)
            await ways.enter_async_context(reading_mailbox(core.store, server, replies))
        if address := settings.lmtp:
            lmtp = LmtpServer(
                settings.inbound_mail or "", replies.take, address.host, address.port, share_port=share_port
            )
            with cannot_listen(address, "ADA_LMTP"):
                await lmtp.start()
            ways.push_async_callback(lmtp.stop)
        yield


@asynccontextmanager
async def reading_mailbox(store: Store, server: ImapServer, replies: MailedReplies) -> AsyncIterator[None]:
    """Read a mailbox in one of the processes of the API; another one takes over."""
    mailbox, lease = Mailbox(server), PollerLease(store)
    poller = Poller(store, mailbox, replies, lease, position_kept=POSITION_KEPT)
    running = [asyncio.create_task(one.run(), name=type(one).__name__) for one in (poller, lease)]
    try:
        yield
    finally:
        mailbox.close()
        await cancel_and_wait(*running)


@asynccontextmanager
async def working(work: AnswerWorker | ReplyWorker | SeriesSender) -> AsyncIterator[None]:
    """Work off a tube, beside the API."""
    await work.open()
    worker = work.worker()
    running = asyncio.create_task(worker.run(), name=type(work).__name__)
    try:
        yield
    finally:
        worker.stop()
        await asyncio.wait([running], timeout=SHUTDOWN_TIMEOUT)
        await cancel_and_wait(running)


async def opened_ingress(core: Services, settings: Settings) -> Mapping[str, Ingress]:
    """Return the ways of what gateways post into the queue, by channel."""
    ingress = open_ingress(core.store, core.client, settings)
    for one in ingress.values():
        await one.open()
    return ingress


def events_of(core: Services, settings: Settings, tenant: str) -> Events | None:
    """Return where the events of a tenant's bot go; None if ADA_SCENARIOS has none for it."""
    if not bot_folder(settings, tenant):
        return None
    return Events(core.client, tenant, Choices(core.store), received=ReceivedMessages(core.store))


async def send_webhooks(runtime: WebhookRuntime) -> None:
    """Send until the runtime is stopped. A fault of it does not end the API."""
    while True:
        try:
            return await runtime.run()
        except Exception:  # the API goes on, whatever it is
            log.exception("the sending of webhooks failed, it starts again")
        await asyncio.sleep(RESTART_PAUSE)


async def log_unread_offices(directory: Directory, settings: Settings) -> None:
    """Log a warning for each tenant with a bot whose office has no reader. Raises StoreError."""
    for tenant in tenants_of_bots(settings) if settings.office else ():
        state = await state_of_office(directory, tenant, settings.office or "")
        is_needed = tenant == settings.bot_tenant or state is not OfficeState.NO_GROUP
        if state is not OfficeState.READ and is_needed:
            log.warning("ADA_OFFICE: %s", unread_office(settings.office or "", tenant, state))
