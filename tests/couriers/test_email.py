"""The courier for e-mail, against the sandbox's mail server over real SMTP."""

import asyncio
import ssl
import traceback
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTPUTF8
from pathlib import Path
from typing import Any

import pytest
import trustme

from cli.processes.embedded_valkey import free_port
from couriers.email import courier as email
from couriers.sending import Deferred, Halted, Reason, Rejected, Scope, Sent, SetupError, Unknown
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.mail import SmtpServer
from sandbox.state import Fault, Rule, SandboxState
from tests.couriers.contract import OutageContract, Provider, message, running, send_one

MAGIC_ADDRESSES = {fault.name: address for address, fault in MAGIC_RECIPIENTS["email"].items()}


class MailProvider(Provider):
    module = email
    secrets = ("sandbox",)

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.state = SandboxState()
        self.port = free_port()
        self.changes: dict[str, Any] = {}  # of the settings

    def settings(self) -> email.Settings:
        return replace(email.Settings(self.server.url, timeout=timedelta(seconds=30)), **self.changes)

    def address(self, number: int) -> str:
        return f"student{number}@example.org"

    def received(self, address: str) -> list[str]:
        return [received.text for received in self.state.inbox("email", address)]

    async def start(self) -> None:
        self.server = SmtpServer(self.state, port=self.port)
        await self.server.start()

    async def stop(self) -> None:
        await self.server.stop()


@pytest.fixture
async def provider(tmp_path: Path) -> AsyncIterator[MailProvider]:
    async with running(MailProvider(tmp_path)) as opened:
        yield opened


class TestEmail(OutageContract):
    pass


# what a recipient receives


def last_mail(provider: MailProvider) -> EmailMessage:
    """The newest mail, read as a mail program does."""
    return message_from_bytes(provider.server.contents[-1], policy=SMTPUTF8)


def part(mail: EmailMessage, kind: str) -> str:
    found = mail.get_body((kind,))
    assert found is not None
    return str(found.get_content())


async def test_a_message_is_a_mail_with_a_subject_a_text_and_an_html_part(provider: MailProvider) -> None:
    text = "Моей пары сегодня не будет.\nЗамена: <https://example.org/?a=1&b=2>"
    assert isinstance(await send_one(await provider.open(), provider.address(1), text), Sent)
    mail = last_mail(provider)
    assert (mail["Subject"], mail["From"]) == ("Моей пары сегодня не будет.", "Ada <ada@sandbox.example>")
    assert part(mail, "plain").replace("\r\n", "\n") == text
    html = part(mail, "html")
    assert "Моей пары сегодня не будет.<br>" in html
    assert '&lt;<a href="https://example.org/?a=1&amp;b=2">https://example.org/?a=1&amp;b=2</a>&gt;' in html


async def test_subject_and_sender_come_from_the_operators_template(provider: MailProvider, tmp_path: Path) -> None:
    content = "Subject: Университет: {beginning}\nFrom: Деканат <dean@example.org>\n\n{text}\n\n-- \nДеканат\n"
    (tmp_path / "message.en.txt").write_text(content, encoding="utf-8")
    provider.changes = {"templates": tmp_path, "locale": "en"}
    await send_one(await provider.open(), provider.address(1), "Пары не будет")
    mail = last_mail(provider)
    assert (mail["Subject"], mail["From"]) == ("Университет: Пары не будет", "Деканат <dean@example.org>")
    assert provider.received(provider.address(1)) == ["Пары не будет\n\n-- \nДеканат"]
    assert mail["Message-ID"].endswith("@example.org>")
    assert mail["List-Unsubscribe"] == "<mailto:dean@example.org?subject=unsubscribe>"


@pytest.mark.parametrize(
    ("setting", "header", "one_click"),
    [
        ("", "<mailto:ada@sandbox.example?subject=unsubscribe>", None),
        ("http://example.org/off", "<http://example.org/off>", None),
        (
            "https://example.org/off?who={address}",
            "<https://example.org/off?who=student1%2Bx@example.org>",
            "List-Unsubscribe=One-Click",
        ),
    ],
)
async def test_every_mail_says_how_to_unsubscribe(
    provider: MailProvider, setting: str, header: str, one_click: str | None
) -> None:
    """With one click only at an address of https, as RFC 8058 has it."""
    provider.changes = {"unsubscribe": setting}
    await send_one(await provider.open(), "student1+x@example.org")
    mail = last_mail(provider)
    assert (mail["List-Unsubscribe"], mail["List-Unsubscribe-Post"]) == (header, one_click)


async def test_a_mail_links_to_the_page_of_its_recipient_and_can_be_unsubscribed_there(
    provider: MailProvider,
) -> None:
    courier, page = await provider.open(), "https://ada.example/p/token-of-one"
    await courier.attempt([replace(message(provider.address(1), "Пары <b>"), preferences_url=page)])
    mail = last_mail(provider)
    assert mail["List-Unsubscribe"] == f"<{page}>, <mailto:ada@sandbox.example?subject=unsubscribe>"
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    footer = f"-- \nКакие сообщения вам приходят и как отписаться: {page}"
    assert part(mail, "plain").replace("\r\n", "\n") == f"Пары <b>\n\n{footer}"
    assert f'<a href="{page}">' in part(mail, "html")


@pytest.mark.parametrize(
    ("language", "line"), [("en", "Which messages reach you"), ("ru", "Какие сообщения"), ("", "Какие")]
)
async def test_the_line_below_a_mail_is_in_the_language_of_its_reader(
    provider: MailProvider, language: str, line: str
) -> None:
    """It was in that of ADA_EMAIL_LOCALE."""
    about: dict[str, Any] = {"preferences_url": "https://ada.example/p/x", "language": language}
    await (await provider.open()).attempt([replace(message(provider.address(1), "No classes"), **about)])
    assert part(last_mail(provider), "plain").replace("\r\n", "\n").startswith(f"No classes\n\n-- \n{line}")


async def test_the_reference_is_the_message_id_and_the_same_for_a_repeat(provider: MailProvider) -> None:
    first = await send_one(await provider.open(), provider.address(1))
    second = await send_one(await provider.open(), provider.address(1))
    other = await send_one(await provider.open(), provider.address(1), "other")
    assert first == second
    assert first == other, "it is derived from the random id, not from the text"
    assert last_mail(provider)["Message-ID"] == f"<{first.reference}>"
    assert len({(await send_one(await provider.open(), provider.address(n))).reference for n in (1, 2)}) == 1
    (seeded,) = await (await provider.open()).attempt([message(provider.address(1), seed="another delivery")])
    assert seeded != first


# failures


@pytest.mark.parametrize(
    ("fault", "copies"), [("stored_then_cut", 1), ("stored_then_silence", 1), ("cut_after_data", 0), ("timeout", 0)]
)
async def test_no_answer_after_data_is_unknown_and_the_mail_is_not_sent_again(
    provider: MailProvider, fault: str, copies: int
) -> None:
    provider.changes = {"timeout": timedelta(seconds=3)}
    courier = await provider.open()
    assert isinstance(await send_one(courier, MAGIC_ADDRESSES[fault]), Unknown)
    assert provider.state.counter("email", "transfers") == 1
    assert len(provider.received(MAGIC_ADDRESSES[fault])) == copies


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("refused", Rejected(Reason.RECIPIENT_UNREACHABLE, "550 5.1.1 No such user here")),
        ("content_refused", Rejected(Reason.CONTENT_REFUSED, "554 5.7.1 Message rejected as spam")),
        (
            "greylisted",
            Deferred(Reason.THROTTLED, None, Scope.RECIPIENT, "451 4.7.1 Greylisted, please try again later"),
        ),
        ("mailbox_full", Deferred(Reason.THROTTLED, None, Scope.RECIPIENT, "452 4.2.2 Mailbox full")),
    ],
)
async def test_a_refusal_is_for_the_recipient_only(provider: MailProvider, fault: str, expected: Any) -> None:
    courier = await provider.open()
    assert await send_one(courier, MAGIC_ADDRESSES[fault]) == expected
    assert isinstance(await send_one(courier, provider.address(1)), Sent)
    assert provider.received(MAGIC_ADDRESSES[fault]) == []


async def test_a_greylisted_mail_is_accepted_later(provider: MailProvider) -> None:
    courier = await provider.open()
    assert isinstance(await send_one(courier, MAGIC_ADDRESSES["greylisted"]), Deferred)
    assert isinstance(await send_one(courier, MAGIC_ADDRESSES["greylisted"]), Sent)


@pytest.mark.parametrize("fault", ["disconnect_before", "shutting_down"])
async def test_a_connection_that_ends_before_data_defers_the_mail(provider: MailProvider, fault: str) -> None:
    outcome = await send_one(await provider.open(), MAGIC_ADDRESSES[fault])
    assert isinstance(outcome, Deferred)
    assert (outcome.reason, outcome.scope) == (Reason.PROVIDER_DOWN, Scope.RECIPIENT)


@pytest.mark.parametrize(("fault", "named"), [("sign_in_refused", "password"), ("sender_refused", "from=")])
async def test_a_refused_account_halts_the_courier(provider: MailProvider, fault: str, named: str) -> None:
    courier = await provider.open()
    provider.server.disconnect_all()
    provider.state.add_rule(Rule("email", Fault(fault)))
    outcome = await send_one(courier, provider.address(1))
    assert isinstance(outcome, Halted)
    assert named in outcome.detail
    assert "sandbox@" not in outcome.detail


async def test_a_rate_limit_throttles_the_account(provider: MailProvider) -> None:
    provider.state.add_rule(Rule("email", Fault("rate_limit", 1)))
    courier = await provider.open()
    outcomes = [await send_one(courier, provider.address(number)) for number in range(3)]
    assert isinstance(outcomes[0], Sent)
    assert isinstance(outcomes[2], Deferred)
    assert (outcomes[2].reason, outcomes[2].scope) == (Reason.THROTTLED, Scope.ACCOUNT)


@pytest.mark.parametrize("address", ["", "anna", "a b@example.org", "anna@example.org\r\nBcc: eve@example.org"])
async def test_what_is_no_address_is_rejected_without_a_request(provider: MailProvider, address: str) -> None:
    outcome = await send_one(await provider.open(), address)
    assert outcome == Rejected(Reason.RECIPIENT_UNREACHABLE, "not an e-mail address")
    assert provider.state.counter("email", "transfers") == 0


async def test_many_mails_use_the_connections_that_are_set(provider: MailProvider) -> None:
    provider.changes = {"connections": 2}
    courier = await provider.open()
    outcomes = await asyncio.gather(*(send_one(courier, provider.address(number)) for number in range(50)))
    assert {type(outcome) for outcome in outcomes} == {Sent}
    assert provider.state.counter("email", "connections") <= 2


# opening


async def test_a_wrong_password_is_a_setup_error_that_does_not_show_it(provider: MailProvider) -> None:
    settings = replace(provider.settings(), url=provider.server.url.replace(":sandbox@", ":hidden@"))
    with pytest.raises(SetupError, match="the password in ADA_SMTP_URL") as error:
        await email.open(settings, provider.directory)
    assert "hidden" not in f"{settings}" + "".join(traceback.format_exception(error.value))


@pytest.mark.parametrize("url", ["smtp://127.0.0.1:1", "nonsense", "smtp://ada:hidden@127.0.0.1:1?starttls=off"])
async def test_a_wrong_url_is_a_setup_error_that_does_not_show_the_password(provider: MailProvider, url: str) -> None:
    with pytest.raises(SetupError, match="ADA_SMTP_URL") as error:
        await email.open(email.Settings(url), provider.directory)
    assert "hidden" not in str(error.value)


async def test_a_server_with_its_own_authority_needs_its_certificate(tmp_path: Path) -> None:
    authority, state = trustme.CA(), SandboxState()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    server = SmtpServer(state, tls=server_context(authority))
    await server.start()
    settings = email.Settings(f"smtp://ada:sandbox@127.0.0.1:{server.port}")
    try:
        with pytest.raises(SetupError, match="set ADA_SMTP_CA"):
            await email.open(settings, tmp_path)
        courier = await email.open(replace(settings, ca=tmp_path / "ca.pem"), tmp_path)
        assert isinstance(await send_one(courier, "anna@example.org"), Sent)
        await courier.close()
    finally:
        await server.stop()
    assert state.counter("email", "encrypted") == 1


def server_context(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"connections": 0}, "ADA_EMAIL_CONNECTIONS"),
        ({"locale": "de"}, "ADA_EMAIL_LOCALE"),
        ({"unsubscribe": "javascript:alert(1)"}, "ADA_EMAIL_UNSUBSCRIBE"),
        ({"unsubscribe": "https://example.org/\r\nBcc: x"}, "ADA_EMAIL_UNSUBSCRIBE"),
    ],
)
def test_a_wrong_setting_is_a_setup_error(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(SetupError, match=named):
        email.Settings("smtp://h", **wrong)


async def test_open_sends_no_message(provider: MailProvider) -> None:
    await provider.open()
    assert provider.state.inbox() == []
    assert provider.state.counter("email", "transfers") == 0
