"""Actions about groups, through an unmodified aiogram against the sandbox's Bot API."""

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest

from core.model.people import User
from scenarios.bot import Bot, Role
from scenarios.telegram import ANONYMOUS_ADMINISTRATOR, denial
from tests.sandbox.bot_api_clients import ANNA, BORIS, GROUP
from tests.scenarios.actions.conftest import IN_GROUP, PRIVATE, TENANT, Bench

VERA = 100_003
MUTE, LINK = {"type": "restrict"}, {"type": "invite_link"}


@pytest.fixture
def club(bench: Bench) -> Bench:
    """A group that Vera has created; Boris administers it, Anna is a member."""
    bench.bot_api.server.joining.set_up(GROUP, title="Клуб", username="club", creator=VERA, administrators=[BORIS])
    bench.bot_api.server.joining.join(ANNA, GROUP)
    return bench


async def member(bench: Bench, user: int) -> Any:
    return await bench.bot_api.bot.get_chat_member(GROUP, user)


# restrict


async def test_a_person_is_muted_for_a_duration_and_unmuted_by_id(club: Bench) -> None:
    results = await club.results({**MUTE, "restrict_user_id": ANNA, "duration": "1h 30m"}, IN_GROUP)
    assert results == {"restrict_user_id": ANNA, "restrict_username": "", "duration_seconds": 5400}
    muted = await member(club, ANNA)
    assert (muted.status, muted.can_send_messages, muted.can_send_photos) == ("restricted", False, False)
    assert 5300 < muted.until_date.timestamp() - time.time() <= 5401
    with pytest.raises(LookupError, match="may not write"):
        club.bot_api.server.people.write(ANNA, "?", GROUP)
    await club.results({**MUTE, "restrict_user_id": str(ANNA), "can_send_messages": True}, IN_GROUP, run="2")
    assert (await member(club, ANNA)).status == "member"


async def test_a_person_is_named_by_at_name_or_by_a_reply_and_the_id_wins(club: Bench) -> None:
    await club.people.met({**PRIVATE, "username": "Anna_K"})
    named = await club.results({**MUTE, "restrict_username": "@anna_k", "duration_seconds": 60}, IN_GROUP)
    assert (named["restrict_user_id"], named["duration_seconds"]) == (ANNA, 60)
    reply = {**IN_GROUP, "reply_user_id": ANNA, "reply_username": "anna_k"}
    replied = await club.results({**MUTE, "can_send_messages": True}, reply, run="2")
    assert replied == {"restrict_user_id": ANNA, "restrict_username": "anna_k"}
    both = {**MUTE, "restrict_user_id": ANNA, "restrict_username": "@nobody"}
    assert (await club.results(both, IN_GROUP, run="3"))["restrict_user_id"] == ANNA
    assert "'@nobody' is unknown" in await club.error({**MUTE, "restrict_username": "@nobody"}, IN_GROUP)
    assert "no person is named" in await club.error(MUTE, IN_GROUP)
    unreplaced = {**MUTE, "restrict_user_id": "{reply_user_id}"}
    assert "is not a whole number" in await club.error(unreplaced, IN_GROUP)


async def test_an_earlier_action_may_name_the_person_and_the_duration(club: Bench) -> None:
    found = {"restrict_user_id": ANNA, "duration": "5m"}
    assert (await club.results(MUTE, IN_GROUP, results=found))["duration_seconds"] == 300
    second = {**MUTE, "restrict_username": "@vasya"}
    await club.people.met({**PRIVATE, "user_id": 100_009, "username": "vasya"})
    results = await club.results(second, IN_GROUP, results={"restrict_user_id": ANNA}, run="2")
    assert results["restrict_user_id"] == 100_009  # what this action names wins over the result of another `restrict`


async def test_a_repeated_restriction_ends_at_the_same_moment(club: Bench) -> None:
    fields = {**MUTE, "restrict_user_id": ANNA, "duration": "1h"}
    await club.results(fields, IN_GROUP, run="same")
    first = (await member(club, ANNA)).until_date
    while datetime.now(first.tzinfo).timestamp() < first.timestamp() - 3598:  # until another second has begun
        await club.bot_api.bot.get_me()
    await club.results(fields, IN_GROUP, run="same")
    assert (await member(club, ANNA)).until_date == first


async def test_less_than_thirty_seconds_is_thirty_as_telegram_would_take_it_for_ever(club: Bench) -> None:
    fields = {**MUTE, "restrict_user_id": ANNA, "duration": "5s"}
    assert (await club.results(fields, IN_GROUP))["duration_seconds"] == 30


async def test_what_telegram_refuses_is_the_error_of_the_action(club: Bench) -> None:
    joining = club.bot_api.server.joining
    assert "is an administrator" in await club.error({**MUTE, "restrict_user_id": BORIS}, IN_GROUP)
    joining.set_up(GROUP, without_rights=["can_restrict_members"])
    assert "not enough rights" in await club.error({**MUTE, "restrict_user_id": ANNA}, IN_GROUP)
    assert "only in a group" in await club.error({**MUTE, "restrict_user_id": ANNA}, PRIVATE)
    vk = {**IN_GROUP, "channel": "vk"}
    assert "only in Telegram; this chat is in the channel vk" in await club.error(MUTE, vk)
    assert "ADA_BOT_TOKEN is not set" in await club.without_telegram().error(MUTE, IN_GROUP)


async def test_a_short_wait_is_waited_out_and_a_long_one_fails(club: Bench) -> None:
    fields = {**MUTE, "restrict_user_id": ANNA}
    club.bot_api.inject_fault("flood_wait", 1, method="restrictChatMember")
    await club.results(fields, IN_GROUP)
    club.bot_api.inject_fault("flood_wait", 60, method="restrictChatMember")
    assert "repeat this in 60 s" in await club.error(fields, IN_GROUP)


async def test_an_error_of_the_connection_shows_no_token(club: Bench) -> None:
    for fault in ("disconnect_before", "bad_gateway", "not_json", "unauthorized"):
        club.bot_api.inject_fault(fault, method="restrictChatMember")
        error = await club.error({**MUTE, "restrict_user_id": ANNA}, IN_GROUP)
        assert error
        assert "sandbox" not in error


# invite_link


async def test_a_link_has_the_limit_the_end_and_the_approval_that_the_author_wrote(club: Bench) -> None:
    join = club.bot_api.server.joining.join
    limited = (await club.results({**LINK, "member_limit": 1, "expire": "1d"}, IN_GROUP, run="a"))["invite_link"]
    assert join(100_010, link=limited)
    with pytest.raises(LookupError):
        join(100_011, link=limited)
    asking = (await club.results({**LINK, "requires_approval": True}, IN_GROUP, run="b"))["invite_link"]
    assert not join(100_011, link=asking)
    elsewhere = await club.results({**LINK, "chat_id": "@club"}, PRIVATE, run="c")
    assert join(100_012, link=elsewhere["invite_link"])
    about = await club.bot_api.bot.revoke_chat_invite_link(GROUP, limited)
    assert about.expire_date is not None
    assert 86_300 < about.expire_date.timestamp() - time.time() <= 86_401
    both = {**LINK, "requires_approval": True, "member_limit": 1}
    assert "member limit can't be specified" in await club.error(both, IN_GROUP, run="d")


async def test_a_repeated_step_makes_no_second_link(club: Bench) -> None:
    first = await club.results(LINK, IN_GROUP, run="a")
    assert await club.results(LINK, IN_GROUP, run="a") == first
    assert await club.results(LINK, IN_GROUP, run="b") != first
    assert club.bot_api.state.counters()["telegram-bot"]["createChatInviteLink"] == 2


async def test_the_links_in_the_text_are_revoked(club: Bench) -> None:
    links = [(await club.results(LINK, IN_GROUP, run=str(n)))["invite_link"] for n in range(2)]
    unknown = "https://t.me/+unknown"
    event = {
        **IN_GROUP,
        "event_text": f"Убрать {links[0]}, {links[1].removeprefix('https://')}, {links[0]} и {unknown}!",
    }
    ending = await club.play({**LINK, "cleanup": True}, event, run="c")
    assert ending.returned.results == {"invite_links_deleted": links, "invite_links_failed": [unknown]}
    assert str(ending.state) == "completed"
    with pytest.raises(LookupError):
        club.bot_api.server.joining.join(100_010, link=links[0])
    failed = await club.play({**LINK, "cleanup": True}, {**IN_GROUP, "event_text": unknown})
    assert (str(failed.state), failed.returned.results["invite_links_failed"]) == ("failed", [unknown])
    assert "no invite link" in await club.error({**LINK, "cleanup": True}, {**IN_GROUP, "event_text": "привет"})


# remove


async def test_a_message_is_removed_and_one_that_is_gone_counts_as_removed(club: Bench) -> None:
    people = club.bot_api.server.people
    number = people.write(ANNA, "спам", GROUP)
    for _ in range(2):
        await club.results({"type": "remove"}, {**IN_GROUP, "message_id": number})
    other = people.write(ANNA, "ещё", GROUP)
    await club.results({"type": "remove", "remove_message_id": other}, IN_GROUP)
    assert [one for one in people.messages(GROUP) if "text" in one] == []
    assert "no message to remove" in await club.error({"type": "remove"}, PRIVATE)


# is_member


async def verdict(bench: Bench, event: Mapping[str, Any], **rule: Any) -> str:
    rules = {"user_id": [{"rule": "is_member", **rule}]}
    return str((await bench.play({"type": "validator", "rules": rules}, event)).state)


async def test_membership_is_checked_by_id_by_name_and_in_any_or_all_of_several(club: Bench) -> None:
    other = -1_000_000_000_777
    club.bot_api.server.joining.set_up(other)
    assert await verdict(club, PRIVATE, value=GROUP) == "completed"
    assert await verdict(club, PRIVATE, value="@club") == "completed"
    assert await verdict(club, PRIVATE, value=str(other)) == "failed"
    assert await verdict(club, PRIVATE, value=[other, "@club"]) == "completed"
    assert await verdict(club, PRIVATE, value=[other, "@club"], mode="any") == "completed"
    assert await verdict(club, PRIVATE, value=f"{other}, @club", mode="all") == "failed"
    club.bot_api.server.joining.join(ANNA, other)
    assert await verdict(club, PRIVATE, value=[other, "@club"], mode="all") == "completed"


async def test_membership_of_another_person_and_of_strangers(club: Bench) -> None:
    await club.people.met({**PRIVATE, "username": "anna"})
    stranger = {**PRIVATE, "user_id": 100_020}
    assert await verdict(club, stranger, value=GROUP) == "failed"
    assert await verdict(club, stranger, value=GROUP, target_user=ANNA) == "completed"
    assert await verdict(club, stranger, value=GROUP, target_user="@anna") == "completed"
    await club.results({**MUTE, "restrict_user_id": ANNA}, IN_GROUP)
    assert await verdict(club, PRIVATE, value=GROUP) == "completed"  # who is muted is a member
    club.bot_api.server.joining.leave(ANNA, GROUP)
    assert await verdict(club, PRIVATE, value=GROUP) == "failed"


async def test_the_chats_of_a_membership_are_those_of_the_rule_or_that_of_the_event(club: Bench) -> None:
    other = -1_000_000_000_777
    club.bot_api.server.joining.set_up(other)
    assert await verdict(club, PRIVATE, chat=GROUP) == "completed"
    assert await verdict(club, PRIVATE, chat=[other, "club"], mode="all") == "failed"
    assert await verdict(club, PRIVATE, chat="club", target_user_id=BORIS) == "completed"
    assert await verdict(club, IN_GROUP) == "completed"
    assert await verdict(club, {**IN_GROUP, "chat_id": other}) == "failed"
    rules = {"user_id": [{"rule": "is_member"}]}
    assert "it names no chat" in await club.error({"type": "validator", "rules": rules}, PRIVATE)


async def test_a_membership_that_cannot_be_checked_does_not_hold_and_names_the_reason(club: Bench) -> None:
    rules = {"user_id": [{"rule": "is_member", "value": "@nowhere"}]}
    assert "user_id: is_member: Bad Request: chat not found" in await club.error(
        {"type": "validator", "rules": rules}, PRIVATE
    )
    assert await verdict(club, PRIVATE, value="@nowhere", on_error="pass") == "completed"
    assert await verdict(club, {**PRIVATE, "channel": "vk"}, value=GROUP) == "failed"
    assert await verdict(club, PRIVATE, value=GROUP, target_user="@nobody") == "failed"


# who may run an action


async def denied(bench: Bench, event: Mapping[str, Any], **fields: Any) -> str:
    return str(await denial(bench.context({"type": "send", "text": "x"}, event, {}, "1"), fields))


async def test_only_administrators_of_the_group_run_an_action_for_them(club: Bench) -> None:
    assert await denied(club, IN_GROUP, group_admin=True) == ""
    assert await denied(club, {**IN_GROUP, "user_id": VERA}, group_admin=True) == ""
    assert await denied(club, {**IN_GROUP, "user_id": ANONYMOUS_ADMINISTRATOR}, group_admin=True) == ""
    assert "no administrator" in await denied(club, {**IN_GROUP, "user_id": ANNA}, group_admin=True)
    assert await denied(club, {**IN_GROUP, "user_id": ANNA}, group_admin=False) == ""
    assert "only in a group" in await denied(club, PRIVATE, group_admin=True)
    assert "only in Telegram" in await denied(club, {**IN_GROUP, "channel": "vk"}, group_admin=True)


async def test_roles_list_telegram_ids_and_people_of_other_channels_have_those_of_their_telegram(club: Bench) -> None:
    club.bot = Bot(roles={"admin": Role("admin", permissions=("mute", "ban"), users=(ANNA,))})
    own = {**PRIVATE, "user_id": ANNA}
    assert await denied(club, own, required_role=["boss", "admin"]) == ""
    assert await denied(club, own, required_permission=["mute", "ban"]) == ""
    assert "lacks the permission fly" in await denied(club, own, required_permission=["mute", "fly"])
    assert await denied(club, own, required_role="boss", required_permission="ban") == ""
    vk = {**PRIVATE, "channel": "vk", "user_id": ANNA, "chat_id": ANNA}
    assert "none of the roles admin" in await denied(club, vk, required_role="admin")  # the same number in VK
    contacts = {"telegram": [str(ANNA)], "vk": ["555"]}
    await club.services.core.directory.users.create(TENANT, User(1, role="staff", contacts=contacts))
    linked = {**vk, "user_id": 555, "chat_id": 555}
    assert await denied(club, linked, required_permission="mute") == ""
    assert await denied(club, linked, required_role="staff") == ""
    assert "none of the roles" in await denied(club, linked, required_role="boss")
