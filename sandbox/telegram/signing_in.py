"""The methods of `auth`: a bot by its token, a user by phone and code, and logging out.

Any token of the right form is a bot, any number is a user, and any five digits are his code.
"""

import re
from hashlib import sha256
from typing import Any

from telethon.tl import types

from sandbox.telegram import identities as persons
from sandbox.telegram.hub import Call, user
from sandbox.telegram.replies import Refusal, Reply

_CODE = re.compile(r"[0-9]{5}")
_TOKEN = re.compile(r"([1-9][0-9]{0,11}):[A-Za-z0-9_-]+")


def send_code(call: Call) -> Reply:
    """auth.sendCode: the code is said to come by the app, and is any five digits."""
    phone = call.request.phone_number
    if persons.by_phone(phone) is None:
        return Refusal(400, "PHONE_NUMBER_INVALID")
    return types.auth.SentCode(types.auth.SentCodeTypeApp(length=5), _code_hash(phone))


def sign_in(call: Call) -> Reply:
    """auth.signIn."""
    request = call.request
    identity = persons.by_phone(request.phone_number)
    if identity is None:
        return Refusal(400, "PHONE_NUMBER_INVALID")
    return _code_refused(request) or _authorized(call, identity, bot=False)


def _code_refused(request: Any) -> Refusal | None:
    if request.phone_code_hash != _code_hash(request.phone_number):
        return Refusal(400, "PHONE_CODE_EXPIRED")
    if not request.phone_code:
        return Refusal(400, "PHONE_CODE_EMPTY")
    return None if _CODE.fullmatch(request.phone_code) else Refusal(400, "PHONE_CODE_INVALID")


def _code_hash(phone: str) -> str:
    return sha256(f"code {persons.by_phone(phone)}".encode()).hexdigest()[:18]


def import_bot_authorization(call: Call) -> Reply:
    """auth.importBotAuthorization: the bot's id is the first part of its token."""
    token = _TOKEN.fullmatch(call.request.bot_auth_token)
    if token is None or not persons.exists(int(token[1])):
        return Refusal(400, "ACCESS_TOKEN_INVALID")
    return _authorized(call, int(token[1]), bot=True)


def _authorized(call: Call, identity: int, *, bot: bool) -> Any:
    platform, key = call.platform, call.client.key
    account = platform.accounts.signed_in(identity, bot=bot)
    key.account = identity
    platform.vault.keep_key(key)
    return types.auth.Authorization(user(account, identity))


def log_out(call: Call) -> Reply:
    """auth.logOut: the key stays, without an account."""
    key = call.client.key
    key.account = None
    call.platform.vault.keep_key(key)
    return types.auth.LoggedOut()
