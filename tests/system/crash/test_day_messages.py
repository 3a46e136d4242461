"""A courier is killed while it makes the message of the day of a person, and another courier continues."""

import msgspec
import pytest

from core.model.history_key import HistoryKey
from core.model.states import Status
from tests.support.stack import HOUR
from tests.support.waiting import until
from tests.system.crash.installation import TELEGRAM, Installation, person


@pytest.mark.parametrize(("moment", "status"), [("gathers", Status.SENT), ("sends", Status.UNKNOWN)])
async def test_killed_before_and_while_it_sends_the_message_of_the_day_nothing_is_doubled(
    installation: Installation, moment: str, status: Status
) -> None:
    to_server, server = await installation.link_to_server()
    to_provider, provider = await installation.link_to(TELEGRAM)
    courier = await installation.courier(TELEGRAM, **server, **provider)
    if moment == "gathers":
        to_server.block_requests(trigger=b"\r\nsend\r\n")  # the step of join_day that takes all parts
    else:
        to_provider.block_replies()
    now = installation.core.now()
    one = msgspec.structs.replace(person(1, TELEGRAM), hours=f"{now:%H:%M}-{now:%H:%M} UTC")
    ordered = int((now - HOUR).timestamp() * 10**9)
    both = [await installation.deliver(one, history_key=HistoryKey(0, "7", ordered + number)) for number in range(2)]
    await until(lambda: to_server.blocked or bool(installation.copies(TELEGRAM)))
    courier.kill()
    to_server.cut()
    to_provider.cut()
    await installation.courier(TELEGRAM)
    for accepted in both:
        assert await installation.finished(accepted) == {("telegram", status): 1}
    assert [message.text for message in installation.state.inbox("telegram")] == ["1/2 · hello\n\n2/2 · hello"]
    await installation.audit()
