"""Linking through a real mail server: the code arrives letter for letter and links the contact."""

import re
from collections.abc import AsyncIterator

import pytest

from core.directory import Directory
from core.directory.linking import Linking
from core.model.people import User
from core.redis.store import Store
from couriers.email import LinkCodeMailer, Mailer, MailServer
from sandbox.mail import SmtpServer
from sandbox.state import SandboxState
from tests.core.directory.conftest import TENANT


@pytest.fixture
def state() -> SandboxState:
    return SandboxState()


@pytest.fixture
async def mailer(state: SandboxState) -> AsyncIterator[Mailer]:
    server = SmtpServer(state)
    await server.start()
    opened = Mailer(MailServer.parse(server.url))
    yield opened
    await opened.close()
    await server.stop()


@pytest.mark.parametrize("locale", ["ru", "en"])
async def test_the_code_arrives_by_mail_and_links_the_contact(
    store: Store, directory: Directory, mailer: Mailer, state: SandboxState, locale: str
) -> None:
    await directory.users.create(TENANT, User(1, "Анна", "anna@example.org", locale=locale))
    linking = Linking(store, directory, LinkCodeMailer(mailer))
    await linking.request(TENANT, "telegram", "100001", "Anna@example.org")
    (mail,) = state.messages.read("email", "anna@example.org", 0, 10)
    code = re.search(r"\b[2-9A-HJKMNP-Z]{6}\b", mail.text)
    assert code is not None
    assert (await linking.confirm(TENANT, "telegram", "100001", code[0])).user == 1
    assert await directory.users.by_contact(TENANT, "telegram", "100001") is not None


@pytest.mark.parametrize(("channel", "title"), [("telegram-bot", "(Telegram (bot))"), ("vk", "(VK)"), ("web", "(web)")])
async def test_the_mail_names_the_channel_as_people_know_it(
    store: Store, directory: Directory, mailer: Mailer, state: SandboxState, channel: str, title: str
) -> None:
    await directory.users.create(TENANT, User(1, "Анна", "anna@example.org", locale="en"))
    await Linking(store, directory, LinkCodeMailer(mailer)).request(TENANT, channel, "100001", "anna@example.org")
    (mail,) = state.messages.read("email", "anna@example.org", 0, 10)
    assert title in mail.text
