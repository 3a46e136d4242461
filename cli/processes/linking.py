"""Linking of contacts with the mail server of the settings, as the API and the bots use it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cli.settings.settings import Settings
from core.directory import Directory
from core.directory.linking import Linking
from core.mail import Mailer, MailServer, Templates
from core.redis.store import Store


@asynccontextmanager
async def open_linking(store: Store, directory: Directory, settings: Settings) -> AsyncIterator[Linking]:
    """Without ADA_SMTP_URL every request of a code is refused with MAIL_NOT_SET_UP. Raises SetupError."""
    templates = Templates(settings.mail_templates)
    if settings.smtp_url is None:
        yield Linking(store, directory, None, templates, settings.link_code_lifetime)
        return
    mailer = Mailer(MailServer.parse(settings.smtp_url, settings.smtp_ca))
    try:
        yield Linking(store, directory, mailer, templates, settings.link_code_lifetime)
    finally:
        await mailer.close()
