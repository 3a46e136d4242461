"""The provider refuses the account (401) while a courier sends: it ends with exit code 3, and no recipient is lost."""

import pytest

from cli.command import OPERATOR_NEEDED
from core.model.delivery import Recipient
from core.model.states import Status
from sandbox.events import Fault, Rule
from tests.system.crash.installation import Installation

REFUSALS = {
    "telegram": (Fault("session_revoked"), "1{:05}"),
    "vk": (Fault("request_error", 5), "2{:05}"),
    "telegram-bot": (Fault("unauthorized"), "1{:05}"),
    "max": (Fault("unauthorized"), "3{:05}"),
    "sms": (Fault("unauthorized"), "+7999{:07}"),
    "email": (Fault("sign_in_refused"), "student{}@example.org"),
}


@pytest.mark.parametrize("channel", REFUSALS)
async def test_all_recipients_are_queued_again_and_get_the_message_when_the_account_works(
    installation: Installation, channel: str
) -> None:
    fault, form = REFUSALS[channel]
    courier = installation.start("courier", channel)
    await courier.ready()
    installation.state.add_rule(Rule(channel, fault))
    installation.sandbox.mail.disconnect_all()
    people = [Recipient(number, contacts={channel: [form.format(number)]}) for number in range(1, 41)]
    accepted = await installation.deliver(*people)
    assert await courier.wait() == OPERATOR_NEEDED
    assert await installation.statuses(accepted) == {(channel, Status.QUEUED): 40}
    await installation.audit()
    installation.state.clear_rules()
    second = installation.start("courier", channel)
    await second.ready()
    assert await installation.finished(accepted) == {(channel, Status.SENT): 40}
    assert len(installation.state.inbox(channel)) == 40
