"""ADA_SMTP_URL, and connections to servers with STARTTLS, TLS and a password."""

from pathlib import Path

import pytest

from core.errors import SetupError
from couriers.email import Encryption, Mailer, MailMessage, MailRefused, MailServer, MailUnavailable, Phase
from sandbox.mail import SmtpServer
from sandbox.state import SandboxState
from tests.couriers.email.conftest import Certificates

MESSAGE = MailMessage("anna@example.org", "Код", "123")


def url(server: SmtpServer, scheme: str = "smtp", user: str = "ada:sandbox@", query: str = "") -> str:
    return f"{scheme}://{user}127.0.0.1:{server.port}{query}"


async def send(address: str, ca: Path | None = None) -> None:
    mailer = Mailer(MailServer.parse(address, ca))
    try:
        await mailer.send(MESSAGE)
    finally:
        await mailer.close()


# the URL


@pytest.mark.parametrize(
    ("address", "host", "port", "encryption", "sender"),
    [
        ("smtp://mail.example.org", "mail.example.org", 25, Encryption.OFFERED, "ada@mail.example.org"),
        ("smtp://u@example.org:p@mail.example.org", "mail.example.org", 587, Encryption.REQUIRED, "u@example.org"),
        ("smtp://u%40x.org:p%2F%3A@h:2525", "h", 2525, Encryption.REQUIRED, "u@x.org"),
        ("smtps://u:p@h?from=Ada%20<a@b.org>", "h", 465, Encryption.TLS, "Ada <a@b.org>"),
        ("smtp://u:p@h?starttls=off&from=a+b@c.org", "h", 587, Encryption.OFF, "a+b@c.org"),
        ("smtp://h/?starttls=required", "h", 25, Encryption.REQUIRED, "ada@h"),
        ("smtp://[::1]:26?from=a@b", "::1", 26, Encryption.OFFERED, "a@b"),
    ],
)
def test_the_url_names_the_server(address: str, host: str, port: int, encryption: Encryption, sender: str) -> None:
    server = MailServer.parse(address)
    assert (server.host, server.port, server.encryption, server.sender) == (host, port, encryption, sender)


def test_the_password_of_the_url_is_decoded_and_not_shown() -> None:
    server = MailServer.parse("smtp://u%40x.org:p%2F%3A@h")
    assert (server.username, server.password) == ("u@x.org", "p/:")
    assert "p/:" not in f"{server}{server.account}"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("mail.example.org:587", "must be smtp://"),
        ("http://mail.example.org", "must be smtp://"),
        ("smtp://", "must be smtp://"),
        ("smtp://h:port", "is not a URL"),
        ("smtp://h:587/path", "must be smtp://"),
        ("smtp://h?tls=1", "unknown parameter tls"),
        ("smtp://h?starttls=maybe", "required or off"),
        ("smtps://h?starttls=required", "remove starttls"),
        ("smtp://h?from=nobody", "set from="),
        ("smtp://h?from=a@b%0d%0aBcc:%20c@d", "set from="),
        ("smtp://:secret@h:port", "is not a URL"),
    ],
)
def test_a_wrong_url_is_a_setup_error_that_does_not_show_the_password(address: str, message: str) -> None:
    with pytest.raises(SetupError, match=message) as error:
        MailServer.parse(address)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("content", [None, "nonsense"])
def test_a_file_without_certificates_is_a_setup_error(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "ca.pem"
    if content:
        file.write_text(content)
    with pytest.raises(SetupError, match="ADA_SMTP_CA"):
        Mailer(MailServer.parse("smtps://h", file))


# encryption and sign-in


@pytest.mark.parametrize(
    ("is_implicit", "scheme", "user", "query"),
    [
        (False, "smtp", "ada:sandbox@", ""),
        (False, "smtp", "ada:sandbox@", "?starttls=required"),
        (True, "smtps", "ada:sandbox@", ""),
    ],
)
async def test_a_mail_is_sent_encrypted_and_signed_in(
    state: SandboxState, certificates: Certificates, is_implicit: bool, scheme: str, user: str, query: str
) -> None:
    server = SmtpServer(state, tls=certificates.server, is_implicit=is_implicit)
    await server.start()
    try:
        await send(url(server, scheme, user, query), certificates.ca)
        assert state.counter("email", "encrypted") == 1
        with pytest.raises(MailUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
            await send(url(server, scheme, user, query))
    finally:
        await server.stop()
    assert [mail.text for mail in state.inbox("email", "anna@example.org")] == ["123"]


async def test_starttls_is_used_if_it_is_offered(state: SandboxState, certificates: Certificates) -> None:
    server = SmtpServer(state, tls=certificates.server)
    await server.start()
    try:
        with pytest.raises(MailRefused, match="530") as refused:  # without a password; the connection is encrypted
            await send(url(server, user=""), certificates.ca)
    finally:
        await server.stop()
    assert refused.value.phase is Phase.SENDER
    assert state.counter("email", "encrypted") == 1


@pytest.mark.parametrize(("user", "query"), [("ada:sandbox@", ""), ("", "?starttls=required")])
async def test_a_server_without_starttls_gets_no_password(
    smtp: SmtpServer, state: SandboxState, user: str, query: str
) -> None:
    with pytest.raises(MailRefused, match="STARTTLS") as refused:
        await send(url(smtp, user=user, query=query))
    assert refused.value.phase is Phase.CONNECT
    assert state.counter("email", "sign-ins") == 0


async def test_starttls_can_be_switched_off(state: SandboxState, certificates: Certificates) -> None:
    server = SmtpServer(state, tls=certificates.server)
    await server.start()
    await send(url(server, query="?starttls=off"))
    await server.stop()
    assert (len(state.inbox("email")), state.counter("email", "encrypted")) == (1, 0)


async def test_a_wrong_password_is_refused_and_not_shown(smtp: SmtpServer) -> None:
    with pytest.raises(MailRefused, match="535") as refused:
        await send(url(smtp, user="ada:hidden@", query="?starttls=off"))
    assert refused.value.phase is Phase.SIGN_IN
    assert "hidden" not in str(refused.value)


async def test_a_server_that_is_down_is_unavailable() -> None:
    with pytest.raises(MailUnavailable) as error:
        await send("smtp://127.0.0.1:1")
    assert error.value.phase is Phase.CONNECT
