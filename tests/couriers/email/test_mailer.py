"""What becomes of a message, phase by phase; kept connections; no second transfer after DATA."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from couriers.email import (
    MailDeferred,
    Mailer,
    MailError,
    MailMessage,
    MailRefused,
    MailServer,
    MailUnavailable,
    MailUnclear,
    Phase,
)
from couriers.email import mailer as mailer_module
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.mail import SmtpServer
from sandbox.state import Fault, Rule, SandboxState
from tests.support.waiting import stays, until

ESTABLISHED = "01"  # in /proc/net/tcp
MAGIC = {fault.name: address for address, fault in MAGIC_RECIPIENTS["email"].items()}


def message(to: str = "anna@example.org", text: str = "hello") -> MailMessage:
    return MailMessage(to, "subject", text)


@pytest.fixture
async def mailer(smtp: SmtpServer) -> AsyncIterator[Mailer]:
    opened = Mailer(MailServer.parse(smtp.url), timedelta(seconds=3))
    yield opened
    await opened.close()


async def failure(mailer: Mailer, to: str = "anna@example.org") -> MailError:
    with pytest.raises(MailError) as failed:
        await mailer.send(message(to))
    return failed.value


@pytest.mark.parametrize(
    ("fault", "kind", "phase", "status", "copies"),
    [
        ("refused", MailRefused, Phase.RECIPIENT, 550, 0),
        ("mailbox_full", MailDeferred, Phase.RECIPIENT, 452, 0),
        ("greylisted", MailDeferred, Phase.RECIPIENT, 451, 0),
        ("shutting_down", MailUnavailable, Phase.RECIPIENT, 421, 0),
        ("disconnect_before", MailUnavailable, Phase.RECIPIENT, 0, 0),
        ("content_refused", MailRefused, Phase.CONTENT, 554, 0),
        ("busy", MailDeferred, Phase.CONTENT, 451, 0),
        ("stored_then_cut", MailUnclear, Phase.CONTENT, 0, 1),
        ("cut_after_data", MailUnclear, Phase.CONTENT, 0, 0),
        ("stored_then_silence", MailUnclear, Phase.CONTENT, 0, 1),
        ("timeout", MailUnclear, Phase.CONTENT, 0, 0),
    ],
)
async def test_each_failure_is_its_own_error(
    mailer: Mailer, state: SandboxState, fault: str, kind: type[MailError], phase: Phase, status: int, copies: int
) -> None:
    await mailer.send(message())  # the failure meets a kept connection
    error = await failure(mailer, MAGIC[fault])
    assert (type(error), error.phase, error.status) == (kind, phase, status)
    assert len(state.inbox("email", MAGIC[fault])) == copies
    await mailer.send(message(text="after"))
    assert [mail.text for mail in state.inbox("email", "anna@example.org")] == ["hello", "after"]


@pytest.mark.parametrize(
    ("fault", "kind", "phase"),
    [
        ("sign_in_refused", MailRefused, Phase.SIGN_IN),
        ("sign_in_deferred", MailDeferred, Phase.SIGN_IN),
        ("sender_refused", MailRefused, Phase.SENDER),
        ("rate_limit", MailDeferred, Phase.SENDER),
    ],
)
async def test_failures_of_the_account(
    mailer: Mailer, state: SandboxState, fault: str, kind: type[MailError], phase: Phase
) -> None:
    state.add_rule(Rule("email", Fault(fault, 0)))
    error = await failure(mailer)
    assert (type(error), error.phase) == (kind, phase)
    state.clear_rules()
    await mailer.send(message())


@pytest.mark.parametrize("fault", ["stored_then_cut", "stored_then_silence"])
async def test_a_message_is_not_transferred_again_after_data(mailer: Mailer, state: SandboxState, fault: str) -> None:
    for _ in range(2):  # on a new connection, and on a kept one
        state.add_rule(Rule("email", Fault(fault), "boris@example.org", times=1))
        await mailer.send(message())
        before = len(state.inbox("email", "boris@example.org"))
        assert isinstance(await failure(mailer, "boris@example.org"), MailUnclear)
        assert len(state.inbox("email", "boris@example.org")) == before + 1


# kept connections


async def test_one_connection_serves_many_messages(mailer: Mailer, state: SandboxState) -> None:
    for number in range(5):
        await mailer.send(message(text=str(number)))
    await failure(mailer, MAGIC["refused"])
    await mailer.send(message(text="5"))
    assert [mail.text for mail in state.inbox("email", "anna@example.org")] == [*"012345"]
    assert (state.counter("email", "connections"), state.counter("email", "sign-ins")) == (1, 1)


async def test_a_message_on_a_connection_that_died_idle_is_sent_on_a_new_one(
    mailer: Mailer, smtp: SmtpServer, state: SandboxState
) -> None:
    await mailer.send(message())
    smtp.disconnect_all()  # not yet seen by the client
    await mailer.send(message(text="second"))
    assert [mail.text for mail in state.inbox("email")] == ["hello", "second"]
    assert state.counter("email", "connections") == 2


async def test_a_server_that_limits_the_messages_of_a_connection_gets_a_new_one(
    mailer: Mailer, state: SandboxState
) -> None:
    await mailer.send(message())
    state.add_rule(Rule("email", Fault("shutting_down"), times=1))
    await mailer.send(message(text="second"))
    assert [mail.text for mail in state.inbox("email")] == ["hello", "second"]


async def test_a_connection_that_was_idle_for_long_is_not_used(
    mailer: Mailer, state: SandboxState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mailer_module, "LONGEST_IDLE", 0.0)
    for _ in range(2):
        await mailer.send(message())
    assert state.counter("email", "connections") == 2


async def test_concurrent_messages_share_the_connections(smtp: SmtpServer, state: SandboxState) -> None:
    mailer = Mailer(MailServer.parse(smtp.url), connections=3)
    await asyncio.gather(*(mailer.send(message(text=str(number))) for number in range(20)))
    await mailer.close()
    assert sorted(int(mail.text) for mail in state.inbox("email")) == list(range(20))
    assert state.counter("email", "connections") <= 3


async def test_a_cancelled_transfer_closes_its_connection(mailer: Mailer, state: SandboxState) -> None:
    state.add_rule(Rule("email", Fault("timeout"), "boris@example.org"))
    sending = asyncio.ensure_future(mailer.send(message("boris@example.org")))
    await until(lambda: state.counter("email", "sign-ins") == 1)
    await stays(lambda: not sending.done())
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    await mailer.send(message())
    assert state.counter("email", "connections") == 2


async def test_close_says_goodbye_and_a_transfer_under_way_ends_first(mailer: Mailer, state: SandboxState) -> None:
    sending = asyncio.ensure_future(mailer.send(message()))
    await until(lambda: state.counter("email", "sign-ins") == 1)
    await mailer.close()
    await sending
    assert [mail.text for mail in state.inbox("email")] == ["hello"]
    await mailer.check()
    assert mailer._kept == []


async def test_close_ends_the_connection(smtp: SmtpServer, mailer: Mailer) -> None:
    port = urlsplit(smtp.url).port or 0
    await mailer.send(message())
    assert connections_to(port) == 1
    await mailer.close()
    await until(lambda: connections_to(port) == 0)


def connections_to(port: int) -> int:
    """How many TCP connections of this machine lead to the port."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[2].endswith(f":{port:04X}") and row[3] == ESTABLISHED for row in rows)


# addresses in other letters


async def test_an_address_in_other_letters_is_sent_if_the_server_accepts_it(
    mailer: Mailer, state: SandboxState
) -> None:
    await mailer.send(MailMessage("анна@почта.рф", "Тема", "текст"))
    (mail,) = state.inbox("email")
    assert (mail.address, mail.subject, mail.text) == ("анна@xn--80a1acny.xn--p1ai", "Тема", "текст")


async def test_an_address_in_other_letters_is_refused_if_the_server_cannot_deliver_it(state: SandboxState) -> None:
    server = SmtpServer(state, accepts_utf8=False)
    await server.start()
    mailer = Mailer(MailServer.parse(server.url))
    error = await failure(mailer, "анна@почта.рф")
    await mailer.send(message("anna@почта.рф"))
    await mailer.close()
    await server.stop()
    assert (type(error), error.phase) == (MailRefused, Phase.RECIPIENT)
    assert [mail.address for mail in state.inbox("email")] == ["anna@xn--80a1acny.xn--p1ai"]


async def test_nonsense_of_a_server_before_data_is_unavailable_and_after_data_unclear() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers = [b"220 hi", b"250 hi", b"250 ok", b"250 ok", b"354 go", b"what?"]
        for number, answer in enumerate(answers):
            writer.write(answer + b"\r\n")
            await reader.readuntil(b"\r\n.\r\n" if number == 4 else b"\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    address = f"smtp://127.0.0.1:{server.sockets[0].getsockname()[1]}?starttls=off"
    mailer = Mailer(MailServer.parse(address), timedelta(seconds=3))
    assert isinstance(await failure(mailer), MailUnclear)
    server.close()
    assert isinstance(await failure(mailer), MailUnavailable)


@pytest.mark.parametrize(
    ("text", "status"), [("5.1.1 No such user", "5.1.1"), ("4.7.28\nmore", "4.7.28"), ("no", ""), ("10.5.1.1", "")]
)
def test_the_enhanced_status_is_read_from_the_answer(text: str, status: str) -> None:
    assert MailRefused(Phase.RECIPIENT, 550, text).enhanced_status == status
