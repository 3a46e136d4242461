"""Opens the services of core that several processes use, by the settings: rules of sending, linking."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from cli.settings.settings import Settings
from core.directory import Directory
from core.directory.linking import Linking
from core.errors import SetupError
from core.model.hours import TenantOfficeHours, TenantQuietHours
from core.orders import OfficeChat, SendingPolicy
from core.redis.store import Store
from core.sessions import SignInCodes
from couriers.channel import topics_channel
from couriers.email import EmailTemplates, LinkCodeMailer, Mailer, MailServer


def sending_policy_of(settings: Settings) -> SendingPolicy:
    """Return the quotas, the quiet hours, the rights of staff and the office hours of the settings."""
    quiet_hours = settings.quiet_hours and replace(settings.quiet_hours, timezone=settings.timezone)
    office_hours = replace(settings.office_hours, timezone=settings.timezone)
    return SendingPolicy(
        settings.quotas,
        TenantQuietHours(quiet_hours, settings.tenant_timezones),
        settings.staff_writes_to_all,
        TenantOfficeHours(office_hours, settings.tenant_timezones),
        _office_chat(settings),
    )


def _office_chat(settings: Settings) -> OfficeChat | None:
    if settings.office_chat is None:
        return None
    if not settings.office or not re.fullmatch(r"-[1-9]\d{4,15}", settings.office_chat):
        raise SetupError(
            "ADA_OFFICE_CHAT is the id of a group in Telegram, such as -1001234567890, and needs ADA_OFFICE"
        )
    return OfficeChat(settings.bot_tenant, settings.office, topics_channel(), settings.office_chat)


@asynccontextmanager
async def open_linking(store: Store, directory: Directory, settings: Settings) -> AsyncIterator[Linking]:
    """Open the linking of contacts. Without ADA_SMTP_URL every request of a code is refused with MAIL_NOT_SET_UP.
    Raises SetupError.
    """
    async with open_code_mailer(settings) as mailer:
        yield Linking(store, directory, mailer, settings.link_code_lifetime)


@asynccontextmanager
async def open_sign_in_codes(store: Store, directory: Directory, settings: Settings) -> AsyncIterator[SignInCodes]:
    """Open the codes that sign in to the console, with the same conditions as `open_linking`."""
    async with open_code_mailer(settings) as mailer:
        codes = SignInCodes(store, directory, mailer)
        yield codes
        await codes.close()


@asynccontextmanager
async def open_code_mailer(settings: Settings) -> AsyncIterator[LinkCodeMailer | None]:
    """Open the mailer of codes; yield None without ADA_SMTP_URL. Raises SetupError."""
    if settings.smtp_url is None:
        yield None
        return
    templates = EmailTemplates(settings.mail_templates)
    mailer = Mailer(MailServer.parse(settings.smtp_url, settings.smtp_ca))
    try:
        yield LinkCodeMailer(mailer, templates)
    finally:
        await mailer.close()
