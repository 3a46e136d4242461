"""Linking of contacts with the mail server of the settings, as the API and the bots use it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cli.settings.settings import Settings
from core.directory import Directory
from core.directory.linking import Linking
from core.redis.store import Store
from providers.mail import LinkCodeMailer, Mailer, MailServer, Templates


@asynccontextmanager
async def open_linking(store: Store, directory: Directory, settings: Settings) -> AsyncIterator[Linking]:
    """Without ADA_SMTP_URL every request of a code is refused with MAIL_NOT_SET_UP. Raises SetupError."""
    if settings.smtp_url is None:
        yield Linking(store, directory, None, settings.link_code_lifetime)
        return
    templates = Templates(settings.mail_templates)
    mailer = Mailer(MailServer.parse(settings.smtp_url, settings.smtp_ca))
    try:
        yield Linking(store, directory, LinkCodeMailer(mailer, templates), settings.link_code_lifetime)
    finally:
        await mailer.close()
