"""The courier for e-mail in the real runtime: what the history says, and how many copies a recipient has."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from core.model.delivery import Recipient
from core.model.history import History
from core.model.states import Status
from couriers.email import courier as email
from couriers.sending import Reason
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.mail import SmtpServer
from sandbox.state import Fault, Rule, SandboxState
from tests.support.stack import TENANT, Stack
from tests.support.waiting import until

MAGIC = {fault.name: address for address, fault in MAGIC_RECIPIENTS["email"].items()}


@pytest.fixture
async def smtp(stack: Stack) -> AsyncIterator[SmtpServer]:
    """A mail server, and a courier for it on the stack."""
    server = SmtpServer(SandboxState())
    await server.start()
    courier = await email.open(email.Settings(server.url, timeout=timedelta(seconds=4)), Path())
    await stack.courier(courier)
    yield server
    await stack.end_everything()
    await courier.close()
    await server.stop()


def recipients(*addresses: str) -> list[Recipient]:
    return [Recipient(address, contacts={"email": [address]}) for address in addresses]


def outcomes(history: History) -> dict[str, tuple[Status, str | None]]:
    found = {str(record.id): record.outcomes["email"] for record in history.recipients}
    return {address: (outcome.status, outcome.reason) for address, outcome in found.items()}


async def test_each_recipient_has_the_mail_once_or_the_history_says_why_not(stack: Stack, smtp: SmtpServer) -> None:
    names = ("refused", "content_refused", "greylisted", "mailbox_full", "stored_then_cut", "cut_after_data")
    good = [f"student{number}@example.org" for number in range(40)]
    key = (await stack.deliver(*recipients(*good, *(MAGIC[name] for name in names)), channels=("email",))).key
    found = outcomes(await stack.finished(key))
    assert {found[address] for address in good} == {(Status.SENT, None)}
    assert {name: found[MAGIC[name]] for name in names} == {
        "refused": (Status.FAILED, Reason.RECIPIENT_UNREACHABLE),
        "content_refused": (Status.FAILED, Reason.CONTENT_REFUSED),
        "greylisted": (Status.SENT, None),
        "mailbox_full": (Status.FAILED, Reason.THROTTLED),
        "stored_then_cut": (Status.UNKNOWN, Reason.ANSWER_LOST),
        "cut_after_data": (Status.UNKNOWN, Reason.ANSWER_LOST),
    }
    copies = {address: len(smtp._state.inbox("email", address)) for address in found}
    assert {copies[address] for address in (*good, MAGIC["greylisted"], MAGIC["stored_then_cut"])} == {1}
    assert {copies[MAGIC[name]] for name in ("refused", "content_refused", "mailbox_full", "cut_after_data")} == {0}


async def test_a_retry_of_the_unknown_is_another_mail(stack: Stack, smtp: SmtpServer) -> None:
    """A person decides that a second copy is better than none. Mail programs must not take it for the first one."""
    state, address = smtp._state, "anna@example.org"
    state.add_rule(Rule("email", Fault("stored_then_cut"), address, times=1))
    key = (await stack.deliver(*recipients(address), channels=("email",))).key
    assert outcomes(await stack.finished(key))[address][0] is Status.UNKNOWN
    assert await stack.deliveries.retry(key, TENANT, [Status.UNKNOWN]) == 1
    await until(lambda: len(state.inbox("email", address)) == 2)
    assert len({mail.reference for mail in state.inbox("email", address)}) == 2


async def test_an_outage_of_the_server_delays_the_mail(stack: Stack, smtp: SmtpServer) -> None:
    await smtp.stop()
    key = (await stack.deliver(*recipients("anna@example.org"), channels=("email",))).key
    await until(lambda: is_throttled(stack))
    await smtp.start()
    assert outcomes(await stack.finished(key)) == {"anna@example.org": (Status.SENT, None)}


async def is_throttled(stack: Stack) -> bool:
    return bool(await stack.store.redis.keys("queue:*:throttles:email"))
