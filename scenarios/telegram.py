"""Telegram for actions: calls of its Bot API, with what they need, its refusals and its waits, and the permission of a
person to run an action: roles (C-68), members of a group (C-62) and its administrators (C-69).

A short wait (429) is waited out, a longer one fails the action. No text of an error contains the token. The person must
be known: in an event that was submitted with an API key, only a key with the scope admin may name it (I21).

The roles of bot.yaml list Telegram ids. A person who writes elsewhere has those of its Telegram contacts in the
directory. The role that a person has in the directory counts, too, as a role of the bot with that name.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from core import errors
from core.errors import Conflict, Refused
from couriers.telegram_bot import CHANNEL, CHANNELS_OF_IDS, BotCallFailed, CallThrottled
from scenarios.bot.data import Data
from scenarios.bot.model import role_refusal
from scenarios.context import Context, Telegram
from scenarios.schema import conversion
from scenarios.schema.rules import IsMember, Rule, Rules, RuleUnusable
from scenarios.stores.people import People
from scenarios.words import Text, sentence, why_refused

LONGEST_WAIT = 5
"""Seconds of one call in which it waits for Telegram; meanwhile the person's next events wait."""


class TelegramRefused(errors.Refused):
    """Telegram did not do it; the text is that of Telegram. `retry_after`: when it asks for a repeat."""

    def __init__(self, detail: Text, seconds: int | None = None) -> None:
        super().__init__("TELEGRAM_REFUSED", detail)
        self.retry_after = None if seconds is None else timedelta(seconds=seconds)


async def call(context: Context, method: str, **parameters: Data) -> Any:
    """Return the result of a method of the Bot API. Raises Conflict NOT_TELEGRAM, NO_BOT; TelegramRefused."""
    bot = required_bot(context)
    waited = 0
    while True:
        try:
            return await bot.call(method, **parameters)
        except CallThrottled as error:
            waited += error.retry_after
            if waited > LONGEST_WAIT:
                raise TelegramRefused(error.said, error.retry_after) from None
            await asyncio.sleep(error.retry_after)
        except BotCallFailed as error:
            raise TelegramRefused(error.said) from None


def required_bot(context: Context) -> Telegram:
    """Return the client of the Bot API. Raises Conflict NOT_TELEGRAM or NO_BOT."""
    action = context.step.action.type
    if context.channel != CHANNEL:
        raise Conflict("NOT_TELEGRAM", sentence("works_only_telegram", action=action, channel=context.channel))
    if context.services.telegram is None:
        raise Conflict("NO_BOT", sentence("needs_bot_telegram_ada_bot_token", action=action))
    return context.services.telegram


def required_group(context: Context, chat: str) -> int | str:
    """Return the group with this id or @name. Raises Conflict NOT_A_GROUP."""
    if chat.startswith("@"):
        return chat
    if not chat.removeprefix("-").isdecimal() or not chat.startswith("-"):
        raise Conflict("NOT_A_GROUP", sentence("works_only_group", action=context.step.action.type))
    return int(chat)


async def denial(context: Context, fields: Mapping[str, Data]) -> Text:
    """Return why the event's person may not run an action with these fields; empty if it may."""
    needs_role = bool(fields.get("required_role") or fields.get("required_permission"))
    needs_group_admin = bool(conversion.flag(fields.get("group_admin"), "group_admin"))
    if not needs_role and not needs_group_admin:
        return ""
    if reason := context.missing_scope("admin"):
        return reason
    if needs_role:
        ids, role = await _identity(context)
        if error := role_refusal(context.bot.roles, fields, None, ids=ids, role=role):
            return error
    return await _group_denial(context) if needs_group_admin else ""


async def _identity(context: Context) -> tuple[set[str], str]:
    """Return the person's Telegram ids, and its role in the directory."""
    services, own = context.services, {context.person} if context.channel in CHANNELS_OF_IDS else set()
    user = await services.core.directory.users.by_contact(services.tenant, context.channel, context.person)
    if user is None:
        return own, ""
    known = {address for channel in CHANNELS_OF_IDS for address in user.contacts.get(channel, ())}
    return own | known, user.role or ""


async def _group_denial(context: Context) -> Text:
    try:
        return "" if await is_group_admin(context) else sentence("person_no_administrator_group")
    except Refused as error:
        return why_refused(error)


ANONYMOUS_ADMINISTRATOR = 1087968824
"""The user that Telegram names as the sender when an administrator writes in the name of the group."""

_ADMINISTRATORS = ("creator", "administrator")
_STRANGERS = ("user not found", "member not found", "PARTICIPANT_ID_INVALID", "USER_ID_INVALID", "USER_NOT_PARTICIPANT")


@dataclass(frozen=True, slots=True)
class MemberQuestion:
    """The question whether a person is in `chats`: in each of them, or in one. None: in that of the event. `person`: an
    id or @name, "" for the event's.
    """

    chats: tuple[str, ...]
    in_each: bool
    person: str

    @classmethod
    def of(cls, rule: Rule) -> "MemberQuestion":
        """Return a rule `{rule: is_member, chat: chats, mode: any | all, target_user: person}`; `value` is another name
        of `chat`, and `target_user_id` of `target_user`.
        """
        in_each = str(rule.get("mode") or "any").casefold() == "all"
        chats = conversion.texts(rule.get("chat"), "chat") or conversion.texts(rule.get("value"), "value")
        person = rule.get("target_user") or rule.get("target_user_id") or ""
        return cls(tuple(_chat(chat) for chat in chats), in_each, str(person).strip())


def _chat(named: str) -> str:
    """Return a chat as the Bot API knows it: by its id or by @name; authors may leave out the @."""
    return named if named.startswith("@") or named.removeprefix("-").isdecimal() else f"@{named}"


async def is_member(context: Context, rules: Rules) -> IsMember:
    """Ask Telegram what the rules `is_member` of the action ask; return what answers them."""
    questions = {MemberQuestion.of(rule) for rule in _rules(rules)}
    answers = {question: await _answer(context, question) for question in questions}

    def answered(rule: Rule) -> bool:
        answer = answers[MemberQuestion.of(rule)]
        if not isinstance(answer, bool):
            raise RuleUnusable(answer)
        return answer

    return answered


def _rules(rules: Rules) -> list[Rule]:
    """Return the rules `is_member` of all fields."""
    listed = [rule for field in rules.values() for rule in (field if isinstance(field, list | tuple) else [field])]
    return [rule for rule in listed if isinstance(rule, Mapping) and str(rule.get("rule")) == "is_member"]


async def _answer(context: Context, question: MemberQuestion) -> bool | Text:
    """Return whether the person is a member, or why that is unknown."""
    if not question.person and (reason := context.missing_scope("admin")):
        return reason
    try:
        person = await find_person(context, question.person or context.person)
        chats = question.chats or (_own_group(context),)
        found = [await _is_in(context, chat, person) for chat in chats]
    except Refused as error:
        return why_refused(error)
    return all(found) if question.in_each else any(found)


def _own_group(context: Context) -> int | str:
    """Return the group of the event. Raises Conflict NO_CHAT."""
    try:
        return required_group(context, _seen_chat(context))
    except Conflict:
        raise Conflict("NO_CHAT", sentence("names_no_chat_event")) from None


def _seen_chat(context: Context) -> str:
    return str(context.prepared.seen.get("chat_id") or "")


async def _is_in(context: Context, chat: int | str, person: int) -> bool:
    status, is_restricted_member = await _status(context, chat, person)
    return status in (*_ADMINISTRATORS, "member") or is_restricted_member


async def _status(context: Context, chat: int | str, person: int) -> tuple[str, bool]:
    """Return what the person is in the chat, and whether it is a restricted member. Raises Refused."""
    try:
        member = await call(context, "getChatMember", chat_id=chat, user_id=person)
    except TelegramRefused as error:
        if any(text in error.detail for text in _STRANGERS):
            return "left", False
        raise
    return str(member["status"]), bool(member.get("is_member"))


async def find_person(context: Context, named: str) -> int:
    """Return the id of a person, given by id or @name. Raises TelegramRefused if the name is unknown."""
    if named.isdecimal():
        return int(named)
    found = await People(context.services.core.store, context.services.tenant).named(context.channel, named)
    if found is None:
        raise TelegramRefused(sentence("unknown_bot_has_not", name=named[:50]))
    return int(found)


async def is_group_admin(context: Context) -> bool:
    """Return whether the event's person administers the group of the event. Raises Refused."""
    person = await find_person(context, context.person)
    if person == ANONYMOUS_ADMINISTRATOR:
        return True
    status, _ = await _status(context, required_group(context, _seen_chat(context)), person)
    return status in _ADMINISTRATORS
