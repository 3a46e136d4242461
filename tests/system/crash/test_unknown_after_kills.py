"""Without repeat protection, what a killed courier had not sent yet is sent by the next one, and is not unknown."""

import pytest

from core.model.delivery import Accepted
from core.model.states import Status
from couriers.sending.services import MOST_ANNOUNCED
from tests.support.waiting import until
from tests.system.crash.installation import EMAIL, SMS, TELEGRAM_BOT, Channel, Installation, person

SOME = 100
# In every request that announces messages.
SENDING = b'"sending"'


async def wrongly_unknown(installation: Installation, channel: Channel, accepted: Accepted) -> set[str]:
    """The addresses that are unknown and have received nothing. Everything else must agree with the provider."""
    history = await installation.core.history(accepted.key, limit=10_000)
    statuses = {channel.address(int(one.id)): one.outcomes[channel.name].status for one in history.recipients}
    copies = installation.copies(channel)
    assert set(copies.values()) <= {1}
    assert {statuses[address] for address in copies} <= {Status.SENT, Status.UNKNOWN}
    assert {status for address, status in statuses.items() if address not in copies} <= {Status.UNKNOWN}
    return {address for address, status in statuses.items() if status is Status.UNKNOWN} - copies.keys()


@pytest.mark.parametrize("channel", [SMS, TELEGRAM_BOT], ids=lambda channel: channel.name)
async def test_killed_before_the_reply_to_its_announcements_few_messages_are_unknown(
    installation: Installation, channel: Channel
) -> None:
    link, settings = await installation.link_to_server()
    courier = await installation.courier(channel, **settings)
    link.block_replies(trigger=SENDING)
    accepted = await installation.deliver(*(person(number, channel) for number in range(SOME)))
    await until(lambda: link.blocked, within=20)
    courier.kill()
    link.cut()
    await installation.courier(channel)
    await installation.finished(accepted)
    assert 1 <= len(await wrongly_unknown(installation, channel, accepted)) <= MOST_ANNOUNCED
    await installation.audit()


async def test_killed_before_data_no_mail_is_unknown(installation: Installation) -> None:
    link, settings = await installation.link_to(EMAIL)
    courier = await installation.courier(EMAIL, **settings)
    link.block_requests()
    accepted = await installation.deliver(*(person(number, EMAIL) for number in range(SOME)))
    await until(lambda: link.blocked, within=20)
    await installation.lease_renewed()
    courier.kill()
    link.cut()
    await installation.courier(EMAIL)
    assert await installation.finished(accepted) == {(EMAIL.name, Status.SENT): SOME}
    await installation.audit()
