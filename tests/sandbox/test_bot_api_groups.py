"""Groups in the sandbox's Bot API: members, rights, invite links, people who join, and menus of commands."""

import time
from typing import Any

import pytest

from sandbox.sandbox import Sandbox
from tests.sandbox.bot_api_clients import ANNA, BORIS, GROUP, BotApi, bot_api, refusal
from tests.sandbox.conftest import WebClient
from tests.support.whole_aiogram import types

__all__ = ["bot_api"]

VERA = 100_003
ALL = ["message", "chat_member", "chat_join_request"]
MUTED, FREE = (
    types.ChatPermissions(can_send_messages=False),
    types.ChatPermissions(**dict.fromkeys(types.ChatPermissions.model_fields, True)),
)


async def updates(api: BotApi) -> list[types.Update]:
    """Return the updates since the last call, also of those kinds that must be asked for."""
    found = await api.bot.get_updates(allowed_updates=ALL)
    await api.bot.get_updates(offset=found[-1].update_id + 1 if found else None, allowed_updates=ALL)
    return found


async def new_link(api: BotApi, **options: Any) -> types.ChatInviteLink:
    await updates(api)  # the kinds that are asked for hold for what comes now
    return await api.bot.create_chat_invite_link(GROUP, **options)


async def status(api: BotApi, user: int, chat: int | str = GROUP) -> str:
    return str((await api.bot.get_chat_member(chat, user)).status)


async def test_only_those_who_joined_are_members_of_a_group_that_was_set_up(bot_api: BotApi) -> None:
    bot_api.server.joining.set_up(GROUP, title="Клуб", username="club", creator=VERA, administrators=[BORIS])
    assert await status(bot_api, ANNA, "@Club") == "left"
    bot_api.server.joining.join(ANNA, GROUP)
    assert [await status(bot_api, user) for user in (ANNA, BORIS, VERA)] == ["member", "administrator", "creator"]
    bot_api.server.joining.leave(ANNA, GROUP)
    assert await status(bot_api, ANNA) == "left"
    administrators = {one.user.id for one in await bot_api.bot.get_chat_administrators(GROUP)}
    assert administrators == {BORIS, VERA, bot_api.bot.id}
    assert (await bot_api.bot.get_chat("@club")).title == "Клуб"
    assert "chat not found" in await refusal(bot_api.bot.get_chat("@nobody"))


async def test_the_bot_learns_who_joined_by_which_link_and_who_added_whom(bot_api: BotApi) -> None:
    link = await new_link(bot_api, name="осень", member_limit=1)
    bot_api.server.joining.join(ANNA, link=link.invite_link)
    changed, joined = await updates(bot_api)
    assert changed.chat_member is not None
    assert changed.chat_member.invite_link is not None
    assert (changed.chat_member.invite_link.invite_link, changed.chat_member.new_chat_member.user.id) == (
        link.invite_link,
        ANNA,
    )
    assert joined.message is not None
    assert [one.id for one in joined.message.new_chat_members or []] == [ANNA]
    bot_api.server.joining.join(VERA, GROUP, added_by=BORIS)
    added = (await updates(bot_api))[-1].message
    assert added is not None
    assert added.from_user is not None
    assert (added.from_user.id, [one.id for one in added.new_chat_members or []]) == (BORIS, [VERA])


async def test_a_link_ends_with_its_limit_its_date_and_its_revocation(bot_api: BotApi) -> None:
    join = bot_api.server.joining.join
    once = await new_link(bot_api, member_limit=1)
    join(ANNA, link=once.invite_link)
    over = await new_link(bot_api, expire_date=int(time.time()) - 1)
    revoked = await new_link(bot_api)
    assert (await bot_api.bot.revoke_chat_invite_link(GROUP, revoked.invite_link)).is_revoked
    for link in (once, over, revoked):
        with pytest.raises(LookupError, match="not valid"):
            join(BORIS, link=link.invite_link)
    assert "INVITE_HASH_EXPIRED" in await refusal(bot_api.bot.revoke_chat_invite_link(GROUP, "https://t.me/+no"))
    primary = await bot_api.bot.export_chat_invite_link(GROUP)
    assert await bot_api.bot.export_chat_invite_link(GROUP) != primary
    with pytest.raises(LookupError):
        join(BORIS, link=primary)


async def test_people_ask_to_join_and_are_approved_or_declined(bot_api: BotApi) -> None:
    bot_api.server.joining.set_up(GROUP)
    link = await new_link(bot_api, creates_join_request=True)
    assert not bot_api.server.joining.join(ANNA, link=link.invite_link)
    assert not bot_api.server.joining.join(BORIS, link=link.invite_link)
    asked = [one.chat_join_request for one in await updates(bot_api)]
    assert [one.from_user.id for one in asked if one] == [ANNA, BORIS]
    assert await bot_api.bot.approve_chat_join_request(GROUP, ANNA)
    assert await bot_api.bot.decline_chat_join_request(GROUP, BORIS)
    assert (await status(bot_api, ANNA), await status(bot_api, BORIS)) == ("member", "left")
    changed = (await updates(bot_api))[0].chat_member
    assert changed is not None
    assert changed.via_join_request
    assert "USER_ALREADY_PARTICIPANT" in await refusal(bot_api.bot.approve_chat_join_request(GROUP, ANNA))
    assert "HIDE_REQUESTER_MISSING" in await refusal(bot_api.bot.approve_chat_join_request(GROUP, BORIS))
    both = bot_api.bot.create_chat_invite_link(GROUP, creates_join_request=True, member_limit=1)
    assert "member limit can't be specified" in await refusal(both)


async def test_a_muted_person_cannot_write_until_the_restriction_is_over(bot_api: BotApi) -> None:
    await bot_api.bot.restrict_chat_member(GROUP, ANNA, MUTED, until_date=int(time.time()) + 3600)
    member = await bot_api.bot.get_chat_member(GROUP, ANNA)
    assert isinstance(member, types.ChatMemberRestricted)
    assert 3500 < member.until_date.timestamp() - time.time() <= 3600
    with pytest.raises(LookupError, match="may not write"):
        bot_api.server.people.write(ANNA, "?", GROUP)
    await bot_api.bot.restrict_chat_member(GROUP, ANNA, FREE)
    assert bot_api.server.people.write(ANNA, "!", GROUP)
    await bot_api.bot.restrict_chat_member(GROUP, ANNA, MUTED, until_date=int(time.time()) + 5)
    muted = await bot_api.bot.get_chat_member(GROUP, ANNA)
    assert isinstance(muted, types.ChatMemberRestricted)
    assert muted.until_date.timestamp() == 0  # less than 30 seconds is for ever


async def test_telegram_refuses_what_the_bot_may_not_do(bot_api: BotApi) -> None:
    bot, small = bot_api.bot, -123
    bot_api.server.joining.set_up(GROUP, creator=VERA, administrators=[BORIS])
    assert "is an administrator" in await refusal(bot.restrict_chat_member(GROUP, BORIS, MUTED))
    assert "chat owner" in await refusal(bot.ban_chat_member(GROUP, VERA))
    assert "restrict self" in await refusal(bot.restrict_chat_member(GROUP, bot.id, MUTED))
    assert "only for supergroups" in await refusal(bot.restrict_chat_member(small, ANNA, MUTED))
    assert "no administrators in the private chat" in await refusal(bot.get_chat_administrators(ANNA))
    bot_api.server.joining.set_up(GROUP, without_rights=["can_restrict_members", "can_invite_users"])
    assert "not enough rights" in await refusal(bot.restrict_chat_member(GROUP, ANNA, MUTED))
    assert "not enough rights" in await refusal(bot.create_chat_invite_link(GROUP))
    assert (await bot.get_chat_member(GROUP, bot.id)).can_invite_users is False  # type: ignore[union-attr]


async def test_each_scope_has_its_own_menu(bot_api: BotApi) -> None:
    bot, private = bot_api.bot, types.BotCommandScopeAllPrivateChats()
    member = types.BotCommandScopeChatMember(chat_id=GROUP, user_id=ANNA)
    for name, scope in (("all", None), ("private", private), ("anna", member)):
        await bot.set_my_commands([types.BotCommand(command=name, description="?")], scope=scope)
    assert [one.command for one in await bot.get_my_commands(scope=member)] == ["anna"]
    await bot.delete_my_commands(scope=private)
    assert await bot.get_my_commands(scope=private) == []
    assert [one.command for one in await bot.get_my_commands()] == ["all"]
    wrong = bot.set_my_commands([types.BotCommand(command="Верх", description="?")])
    assert "BOT_COMMAND_INVALID" in await refusal(wrong)


async def test_the_page_lets_a_person_join_a_group_and_leave_it(sandbox: Sandbox, web_client: WebClient) -> None:
    group = {"chat": GROUP}
    assert (await web_client.call("POST", "group/telegram-bot", {**group, "title": "Клуб", "username": "club"}))[
        0
    ] == 204
    assert await web_client.call("POST", "join/telegram-bot", {"address": ANNA, **group}) == (200, {"joined": True})
    shown = await web_client.get("chat/telegram-bot", address=str(GROUP))
    assert [one["kind"] for one in shown["messages"]] == ["new_chat_members"]
    assert (await web_client.call("POST", "leave/telegram-bot", {"address": ANNA, **group}))[0] == 204
    assert (await web_client.call("POST", "leave/telegram-bot", {"address": ANNA, **group}))[0] == 404
    link = {"address": ANNA, "link": "https://t.me/+none"}
    assert (await web_client.call("POST", "join/telegram-bot", link))[0] == 404
    assert (await web_client.call("POST", "join/telegram-bot", {"address": ANNA}))[0] == 422
