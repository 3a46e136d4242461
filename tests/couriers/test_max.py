"""The courier of MAX, against the sandbox: the contract, the answers, the search in the dialog, the sign-in."""

import ssl
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import pytest
import trustme

from couriers.max import courier as max_courier
from couriers.max.calls import Throttles
from couriers.sending import Deferred, Reason, Rejected, Scope, Sent, SetupError, Unknown
from sandbox.state import Fault, Rule
from tests.couriers.bot_contract import LOST_ANSWERS, BotContract, BotProvider
from tests.couriers.contract import Provider, send_one
from tests.couriers.max_provider import GROUP, TOKEN, MaxProvider, provider

__all__ = ["provider"]


class TestMax(BotContract):
    malformed = ("", "0", "-0", "+79990000001", "ivanov", "@anna", "1" * 20, "5; 6", "٣٤")
    refused: ClassVar = {
        "suspended": Reason.BLOCKED,
        "denied_with_200": Reason.BLOCKED,
        "chat_not_found": Reason.RECIPIENT_UNREACHABLE,
        "bad_payload": Reason.CONTENT_REFUSED,
        "method_not_allowed": Reason.CONTENT_REFUSED,
    }
    longest, scope = 4000, Scope.ACCOUNT
    settings = ("ADA_MAX_TOKEN", "ADA_MAX_API_URL")

    async def test_what_the_channel_shows_is_sent_and_no_tag_is_seen(self, provider: Provider) -> None:
        await super().test_what_the_channel_shows_is_sent_and_no_tag_is_seen(provider)

    async def test_the_longest_text_is_received_unchanged(self, provider: Provider) -> None:
        await super().test_the_longest_text_is_received_unchanged(provider)

    async def test_a_refused_message_is_final_and_the_others_are_sent(self, provider: BotProvider) -> None:
        await super().test_a_refused_message_is_final_and_the_others_are_sent(provider)

    @pytest.mark.parametrize(("fault", "copies"), LOST_ANSWERS)
    async def test_a_lost_answer_is_unknown_and_the_request_is_not_repeated(
        self, provider: BotProvider, fault: str, copies: int
    ) -> None:
        await super().test_a_lost_answer_is_unknown_and_the_request_is_not_repeated(provider, fault, copies)

    async def test_a_later_part_that_is_refused_shows_what_arrived(self, provider: BotProvider) -> None:
        await super().test_a_later_part_that_is_refused_shows_what_arrived(provider)


# the message


async def test_a_text_of_more_than_4000_units_is_sent_in_parts_in_order(provider: MaxProvider) -> None:
    text = "слово 😀 " * 500
    outcome = await send_one(await provider.open(), provider.address(1), text)
    received = provider.state.inbox("max", provider.address(1))
    assert "".join(one.text for one in received) == text
    assert len(received) == 2
    assert outcome == Sent(",".join(one.reference for one in received))


async def test_a_group_is_named_by_its_negative_id(provider: MaxProvider) -> None:
    assert isinstance(await send_one(await provider.open(), GROUP), Sent)
    assert provider.received(GROUP) == ["hello"]


# the answers


async def test_a_dialog_that_is_not_found_is_asked_for_once_more_before_that_is_final(provider: MaxProvider) -> None:
    courier = await provider.open()
    for fault, second in [("dialog_not_found", Rejected), ("not_found_at_first", Sent)]:
        first = await send_one(courier, provider.magic[fault])
        assert first == Deferred(Reason.PRIVACY, timedelta(seconds=2), detail="dialog.not.found")
        assert isinstance(await send_one(courier, provider.magic[fault]), second)


async def test_a_file_that_is_not_processed_yet_is_a_wait_of_its_message_that_grows(provider: MaxProvider) -> None:
    courier = await provider.open()
    found = [await send_one(courier, provider.magic["not_ready"]) for _ in range(3)]
    assert [one.after.total_seconds() for one in found[:2]] == [1, 2]
    assert {one.scope for one in found[:2]} == {Scope.RECIPIENT}
    assert isinstance(found[2], Sent)


async def test_a_429_defers_the_bot_for_the_time_named(provider: MaxProvider) -> None:
    courier = await provider.open()
    provider.inject_fault("flood_wait", 17)
    outcome = await send_one(courier, provider.address(1))
    assert outcome == Deferred(Reason.THROTTLED, timedelta(seconds=17), Scope.ACCOUNT, "429")
    assert provider.received(provider.address(1)) == []


async def test_a_dialog_that_is_too_fast_waits_alone(provider: MaxProvider) -> None:
    courier = await provider.open()
    provider.state.add_rule(Rule("max", Fault("dialog_rate", 2), method="sendMessage"))
    found = [await send_one(courier, provider.address(1), text) for text in ("one", "two", "three")]
    assert [type(one) for one in found] == [Sent, Sent, Deferred]
    assert found[2] == Deferred(Reason.THROTTLED, timedelta(seconds=1), Scope.CHAT, "429")
    assert isinstance(await send_one(courier, provider.address(2)), Sent)


@pytest.mark.parametrize(
    ("fault", "expected"), [("stored_then_error", Sent), ("disconnect_after", Sent), ("server_error", Unknown)]
)
@pytest.mark.parametrize("address", ["300002", GROUP])
async def test_a_look_into_a_known_dialog_proves_that_a_message_is_there_and_never_that_it_is_not(
    provider: MaxProvider, fault: str, expected: type, address: str
) -> None:
    courier = await provider.open()
    await send_one(courier, address, "before")
    restarted = await provider.open()  # the id of the dialog is stored
    provider.inject_fault(fault, address=address)
    outcome = await send_one(restarted, address, "hello")
    assert isinstance(outcome, expected)
    if isinstance(outcome, Sent):
        assert outcome.reference == provider.state.inbox("max", address)[-1].reference


async def test_a_look_does_not_take_the_message_of_another_call_for_its_own(provider: MaxProvider) -> None:
    courier = await provider.open()
    address = provider.address(1)
    first = await send_one(courier, address)
    provider.inject_fault("server_error", address=address)
    assert isinstance(await send_one(courier, address, seed="again"), Unknown)
    provider.inject_fault("stored_then_error", address=address)
    third = await send_one(courier, address, seed="once more")
    assert (type(first), type(third)) == (Sent, Unknown)  # the second may have been stored late
    assert len(provider.received(address)) == 2


# opening


async def test_a_bot_that_waits_for_its_moderation_is_told_so(provider: MaxProvider) -> None:
    provider.inject_fault("suspended", method="getMe")
    with pytest.raises(SetupError, match="moderation"):
        await provider.open()


async def test_the_certificate_is_verified_with_the_root_of_the_setting(provider: MaxProvider, tmp_path: Path) -> None:
    authority, root = trustme.CA(), tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(root))
    await provider.server.stop()
    provider.server.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(provider.server.tls)
    await provider.server.start()
    url = f"https://127.0.0.1:{provider.server.port}"
    with pytest.raises(SetupError, match="certificate is not trusted: set ADA_MAX_CA"):
        await max_courier.open(max_courier.Settings(TOKEN, url), tmp_path)
    with pytest.raises(SetupError, match=r"ADA_MAX_CA is .*missing"):
        await max_courier.open(max_courier.Settings(TOKEN, url, tmp_path / "missing"), tmp_path)
    courier = await max_courier.open(max_courier.Settings(TOKEN, url, root), tmp_path)
    assert isinstance(await send_one(courier, provider.address(1)), Sent)
    await courier.close()


async def test_two_refusals_without_a_status_of_their_own_are_unknown(provider: MaxProvider) -> None:
    courier = await provider.open()
    for number, fault in enumerate(("error_with_200", "busy"), 1):
        assert isinstance(await send_one(courier, provider.magic[fault]), Unknown)
        assert (provider.requests, provider.received(provider.magic[fault])) == (number, [])


def test_the_wait_of_the_bot_is_short_again_after_a_message_to_anybody_got_through() -> None:
    moments = iter((0, 2, 10, 20))
    now = 0.0

    def refused() -> float:
        nonlocal now
        now = next(moments)
        after = throttles.refused("1", Deferred(Reason.THROTTLED)).after
        return after.total_seconds() if after else 0.0

    throttles = Throttles(lambda: now)
    assert [refused(), refused()] == [1, 2]
    now = next(moments)
    throttles.accepted("2")
    assert refused() == 1
