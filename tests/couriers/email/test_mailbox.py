"""The mailbox of ADA_IMAP_URL at a real IMAP server, and what the doctor says of it."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.commands.start.doctor import check_mailbox
from cli.commands.start.store_findings import Finding
from cli.settings.settings import Settings
from core.errors import SetupError
from couriers.email.receive import ImapServer, Mailbox
from tests.couriers.email.conftest import Certificates
from tests.support.dovecot import Dovecot, dovecot
from tests.support.servers import needs_package

MAIL = b"From: maria@home.example\nSubject: Re\n\nHello\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with dovecot() as one:
        yield one


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("imap.example.org", "must be imap://"),
        ("imaps://imap.example.org", "needs a user and a password"),
        ("imaps://u:hunter2@h?starttls=off", "encrypted from the beginning"),
        ("imap://u:hunter2@h?tls=1", "unknown parameter tls"),
        ("imaps://u:hunter2@h/Входящие", "in ASCII letters"),
    ],
)
def test_a_wrong_address_is_refused_and_its_password_is_not_shown(url: str, text: str) -> None:
    with pytest.raises(SetupError, match=text) as refused:
        ImapServer.parse(url)
    assert "hunter2" not in str(refused.value)
    assert "hunter2" not in repr(Settings(inbound_mail="reply@school.example", imap_url=url))


def test_an_address_has_the_usual_port_and_folder() -> None:
    one = ImapServer.parse("imaps://reply%40school.example:p%40ss@imap.school.example")
    assert (one.port, one.folder, one.password) == (993, "INBOX", "p@ss")
    assert one.account == "reply@school.example@imap.school.example:993/INBOX"
    assert ImapServer.parse("imap://u:p@h/Replies").account == "u@h:143/Replies"


@needs_package("dovecot-imapd", "/usr/sbin/dovecot")
async def test_old_mails_of_a_new_mailbox_are_not_read(server: Dovecot) -> None:
    server.put(MAIL, received="20240101T1200")
    mailbox = Mailbox(ImapServer.parse(server.url), pause=0.01)
    page = await mailbox.poll("")
    assert page.events == []
    server.put(MAIL)
    page = await mailbox.poll(page.position)
    assert page.events == [{"mail": MAIL.replace(b"\n", b"\r\n"), "is_whole": True}]
    mailbox.close()


@needs_package("dovecot-imapd", "/usr/sbin/dovecot")
@pytest.mark.parametrize(
    ("change", "detail", "remedy"),
    [
        (("pass%20", "wrong"), "refuses reply@school.example", "app password"),
        (("?", "/Nowhere?"), "the folder Nowhere cannot be opened", "check user, password and folder"),
        (("?starttls=off", ""), "TLS not supported", "check the name, the port and imaps://"),
        (("@127.0.0.1:", "@127.0.0.1:1?x="), "unknown parameter", ""),
    ],
)
async def test_the_doctor_says_why_a_mailbox_cannot_be_read(
    server: Dovecot, change: tuple[str, str], detail: str, remedy: str
) -> None:
    found = await doctors(server.url.replace(*change))
    assert found.is_good is False
    assert detail in found.detail
    assert remedy in found.repair


async def test_the_doctor_says_that_no_server_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    found = await doctors(f"imap://u:p@127.0.0.1:{port}?starttls=off")
    assert (found.is_good, "cannot be read: " in found.detail) == (False, True)


@needs_package("dovecot-imapd", "/usr/sbin/dovecot")
async def test_the_doctor_signs_in_and_counts_the_mails(server: Dovecot) -> None:
    found = await doctors(server.url)
    assert found.is_good
    assert found.detail.startswith("signed in as reply@school.example@127.0.0.1:")
    assert "pass" not in found.detail


@needs_package("dovecot-imapd", "/usr/sbin/dovecot")
async def test_a_certificate_of_its_own_is_accepted_only_if_its_authority_is_trusted(
    certificates: Certificates,
) -> None:
    with dovecot(certificates.authority.issue_cert("127.0.0.1")) as server:
        server.put(MAIL)
        for url in server.tls_urls:  # TLS from the beginning, and STARTTLS
            mailbox = Mailbox(ImapServer.parse(url, certificates.ca), pause=0.01)
            assert (await mailbox.poll("")).events == [{"mail": MAIL.replace(b"\n", b"\r\n"), "is_whole": True}]
            mailbox.close()
            assert (await doctors(url, certificates.ca)).is_good
            refused = await doctors(url)
            assert (refused.is_good, refused.detail) == (
                False,
                "the certificate of 127.0.0.1 is not trusted: unable to get local issuer certificate",
            )
            assert refused.repair.startswith("set ADA_SMTP_CA")
            other = await doctors(url.replace("127.0.0.1", "localhost"), certificates.ca)
            assert "the certificate of localhost is not trusted: Hostname mismatch" in other.detail


async def test_the_doctor_says_if_no_way_in_is_set() -> None:
    assert (await check_mailbox(Settings(), sign_in=True)).is_good is None
    nothing = await check_mailbox(Settings(inbound_mail="reply@school.example"), sign_in=True)
    assert (nothing.is_good, nothing.detail) == (False, "no mail is received")
    with pytest.raises(SetupError, match="ADA_IMAP_URL needs ADA_INBOUND_MAIL"):
        Settings(imap_url="imaps://u:p@h")


async def doctors(url: str, ca: Path | None = None) -> Finding:
    settings = Settings(inbound_mail="reply@school.example", imap_url=url, smtp_ca=ca)
    return await check_mailbox(settings, sign_in=True)
