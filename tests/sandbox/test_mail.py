"""The sandbox's mail server, through the standard library's client."""

import asyncio
import smtplib
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from email.message import EmailMessage
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from core.threads.mail_reading import read_mail
from sandbox.faults import FAULTS
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.mail import SmtpServer
from sandbox.mail.replying import CLIENTS, open_links, reply_to
from sandbox.state import Fault, Rule, SandboxState

MAGIC = {fault.name: address for address, fault in MAGIC_RECIPIENTS["email"].items()}
SILENCE = 0.3  # seconds; a normal answer takes less than a hundredth of it
TEXT = "Моей пары сегодня не будет.\nЗамена: «Сети» 🙂"


class Client:
    """An unmodified smtplib in a thread."""

    def __init__(self, server: SmtpServer) -> None:
        self.url = urlsplit(server.url)
        self.state = server._state

    async def run(self, work: Callable[[smtplib.SMTP], Any], password: str = "sandbox") -> Any:
        return await asyncio.to_thread(self._run, work, password)

    def _run(self, work: Callable[[smtplib.SMTP], Any], password: str) -> Any:
        with smtplib.SMTP(str(self.url.hostname), self.url.port or 0, timeout=20) as smtp:
            if password:
                smtp.login(str(self.url.username), password)
            assert smtp.sock is not None
            smtp.sock.settimeout(SILENCE)
            return work(smtp)

    async def send(self, to: str = "anna@example.org") -> None:
        await self.run(lambda smtp: smtp.send_message(mail(to)))

    def texts(self, address: str) -> list[str]:
        return [received.text for received in self.state.inbox("email", address)]


def mail(to: str) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "ada@sandbox.example", to, "Тема «письма»"
    message["Message-ID"] = "<1@sandbox.example>"
    message.set_content(TEXT)
    message.add_alternative(f"<p>{TEXT}</p>", subtype="html")
    return message


@pytest.fixture
async def client(state: SandboxState) -> AsyncIterator[Client]:
    server = SmtpServer(state)
    await server.start()
    yield Client(server)
    await server.stop()


async def test_the_inbox_shows_subject_and_text_of_a_mail(client: Client) -> None:
    await client.send()
    (received,) = client.state.inbox("email", "anna@example.org")
    assert (received.subject, received.text.rstrip("\n")) == ("Тема «письма»", TEXT)
    assert received.reference == "1@sandbox.example"
    assert client.state.counters()["email"].items() >= {"connections": 1, "sign-ins": 1, "messages": 1}.items()


async def test_only_the_known_user_may_send(client: Client) -> None:
    with pytest.raises(smtplib.SMTPAuthenticationError) as wrong:
        await client.run(lambda smtp: None, password="wrong")
    assert wrong.value.smtp_code == 535
    with pytest.raises(smtplib.SMTPSenderRefused) as unknown:
        await client.run(lambda smtp: smtp.send_message(mail("anna@example.org")), password="")
    assert unknown.value.smtp_code == 530


@pytest.mark.parametrize(
    ("name", "error", "status"),
    [
        ("refused", smtplib.SMTPRecipientsRefused, 550),
        ("mailbox_full", smtplib.SMTPRecipientsRefused, 452),
        ("greylisted", smtplib.SMTPRecipientsRefused, 451),
        ("shutting_down", smtplib.SMTPRecipientsRefused, 421),
        ("flood_detected", smtplib.SMTPRecipientsRefused, 450),
        ("rcpt_answer", smtplib.SMTPRecipientsRefused, 530),
        ("data_shutting_down", smtplib.SMTPDataError, 421),
        ("content_refused", smtplib.SMTPDataError, 554),
        ("busy", smtplib.SMTPDataError, 451),
    ],
)
async def test_refusals(client: Client, name: str, error: type[smtplib.SMTPException], status: int) -> None:
    with pytest.raises(error) as refused:
        await client.send(MAGIC[name])
    assert str(status) in str(refused.value)
    assert client.texts(MAGIC[name]) == []
    assert client.state.counter("email", "refused") == 1


@pytest.mark.parametrize(
    ("name", "copies"),
    [
        ("disconnect_before", 0),
        ("rcpt_silence", 0),
        ("stored_then_cut", 1),
        ("cut_after_data", 0),
        ("stored_then_silence", 1),
        ("timeout", 0),
    ],
)
async def test_lost_connections_and_answers(client: Client, name: str, copies: int) -> None:
    with pytest.raises((smtplib.SMTPServerDisconnected, TimeoutError)):
        await client.send(MAGIC[name])
    assert len(client.texts(MAGIC[name])) == copies


async def test_greylisting_accepts_a_later_attempt(client: Client) -> None:
    client.state.add_rule(Rule("email", Fault("greylisted", 2), "boris@example.org"))
    for _ in range(2):
        with pytest.raises(smtplib.SMTPRecipientsRefused):
            await client.send("boris@example.org")
    await client.send("boris@example.org")
    assert len(client.texts("boris@example.org")) == 1


@pytest.mark.parametrize(
    ("name", "error", "status"),
    [
        ("sender_refused", smtplib.SMTPSenderRefused, 550),
        ("rate_limit", smtplib.SMTPSenderRefused, 451),
        ("sign_in_refused", smtplib.SMTPAuthenticationError, 535),
        ("sign_in_deferred", smtplib.SMTPAuthenticationError, 454),
    ],
)
async def test_faults_of_the_account_by_a_rule(
    client: Client, name: str, error: type[smtplib.SMTPResponseException], status: int
) -> None:
    client.state.add_rule(Rule("email", Fault(name, 0)))
    with pytest.raises(error) as refused:
        await client.send()
    assert refused.value.smtp_code == status
    client.state.clear_rules()
    await client.send()


async def test_the_rate_limit_accepts_n_messages_in_a_second(client: Client) -> None:
    client.state.add_rule(Rule("email", Fault("rate_limit", 2)))

    def send_all(smtp: smtplib.SMTP) -> int:
        for _ in range(2):
            smtp.send_message(mail("anna@example.org"))
        return smtp.mail("ada@sandbox.example")[0]

    assert await client.run(send_all) == 451
    assert len(client.texts("anna@example.org")) == 2


async def test_only_addresses_in_other_letters_are_refused_without_smtputf8(client: Client) -> None:
    client.state.add_rule(Rule("email", Fault("utf8_refused")))
    status, _ = await client.run(lambda smtp: smtp.docmd("MAIL FROM:<ada@example.org> SMTPUTF8"))
    assert status == 550
    await client.send()


@pytest.mark.parametrize(
    "command", ["NONSENSE", "RCPT TO:<a@b.org>", "DATA", "MAIL FROM:<", "AUTH PLAIN !!!", "STARTTLS"]
)
async def test_no_command_makes_the_server_fail(client: Client, command: str) -> None:
    status, _ = await client.run(lambda smtp: smtp.docmd(command))
    assert 400 <= status < 600
    await client.send()


async def test_every_fault_is_tested_here() -> None:
    tested = "refused mailbox_full greylisted shutting_down content_refused busy disconnect_before stored_then_cut "
    tested += "flood_detected rcpt_answer rcpt_silence data_shutting_down utf8_refused "
    tested += "cut_after_data stored_then_silence timeout sender_refused rate_limit sign_in_refused sign_in_deferred"
    assert set(FAULTS["email"]) == {*tested.split()}


@pytest.mark.parametrize("client", CLIENTS)
def test_of_a_reply_ada_reads_only_the_new_words_and_sees_machines_and_forged_authors(client: str) -> None:
    mail = EmailMessage()
    mail["From"], mail["Reply-To"], mail["To"] = (
        "Школа <ada@school.example>",
        "reply+abc@school.example",
        "m@home.example",
    )
    mail["Subject"], mail["Message-ID"] = "Пары", "<1@school.example>"
    mail.set_content("Завтра пары не будет\n\n-- \nКакие сообщения вам приходят: http://127.0.0.1:1/p/x\n")
    words, at = "А в пятницу?\nМария", datetime(2026, 11, 27, 12, 0, tzinfo=UTC)
    found = read_mail(reply_to(bytes(mail), words, client, "", at, is_automatic=False))
    assert (found.text, found.authors) == (words, ("m@home.example",))
    assert found.recipients == ("reply+abc@school.example",)
    forged = read_mail(reply_to(bytes(mail), words, client, "x@evil.example", at, is_automatic=True))
    assert (found.is_automatic, forged.is_automatic, forged.authors) == (False, True, ("x@evil.example",))


async def test_a_scanner_opens_each_link_that_leads_to_this_machine() -> None:
    opened: list[str] = []

    async def page(request: web.Request) -> web.Response:
        opened.append(f"{request.method} {request.path_qs}")
        return web.Response()

    app = web.Application()
    app.router.add_route("*", "/a/x", page)
    async with TestServer(app, host="127.0.0.1") as server:
        link, other = f"http://127.0.0.1:{server.port}/a/x?o=1", "https://elsewhere.example/p"
        mail = EmailMessage()
        mail.set_content(f"Придёте? {link}\n{other}\n")
        assert await open_links(bytes(mail)) == {link: 200, other: 0}
    assert opened == ["HEAD /a/x?o=1", "GET /a/x?o=1"]
