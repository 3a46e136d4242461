"""The methods of `auth`: sign-in of a bot by token, of a user by phone and code, and sign-out.

Every token of the right form is valid, every phone is a user, and any five digits are the code.
"""

import re
from hashlib import sha256
from typing import Any

from telethon.tl import types

from sandbox.telegram.methods.replies import Refusal, Reply
from sandbox.telegram.state import identities
from sandbox.telegram.state.hub import Call, user

_CODE = re.compile(r"[0-9]{5}")
_TOKEN = re.compile(r"([1-9][0-9]{0,11}):[A-Za-z0-9_-]+")


def send_code(call: Call) -> Reply:
    """Handle auth.sendCode: announce a code in the app; any five digits are accepted."""
    phone = call.request.phone_number
    if identities.by_phone(phone) is None:
        return Refusal(400, "PHONE_NUMBER_INVALID")
    return types.auth.SentCode(types.auth.SentCodeTypeApp(length=5), _code_hash(phone))


def sign_in(call: Call) -> Reply:
    """Handle auth.signIn."""
    request = call.request
    user_id = identities.by_phone(request.phone_number)
    if user_id is None:
        return Refusal(400, "PHONE_NUMBER_INVALID")
    return _check_code(request) or _authorize(call, user_id, bot=False)


def _check_code(request: Any) -> Refusal | None:
    if request.phone_code_hash != _code_hash(request.phone_number):
        return Refusal(400, "PHONE_CODE_EXPIRED")
    if not request.phone_code:
        return Refusal(400, "PHONE_CODE_EMPTY")
    return None if _CODE.fullmatch(request.phone_code) else Refusal(400, "PHONE_CODE_INVALID")


def _code_hash(phone: str) -> str:
    return sha256(f"code {identities.by_phone(phone)}".encode()).hexdigest()[:18]


def import_bot_authorization(call: Call) -> Reply:
    """Handle auth.importBotAuthorization: the bot's id is the first part of its token."""
    token = _TOKEN.fullmatch(call.request.bot_auth_token)
    if token is None or not identities.exists(int(token[1])):
        return Refusal(400, "ACCESS_TOKEN_INVALID")
    return _authorize(call, int(token[1]), bot=True)


def _authorize(call: Call, user_id: int, *, bot: bool) -> Any:
    hub, key = call.hub, call.client.key
    account = hub.accounts.open_account(user_id, bot=bot)
    key.account = user_id
    hub.key_store.save_key(key)
    return types.auth.Authorization(user(account, user_id))


def log_out(call: Call) -> Reply:
    """Handle auth.logOut: the authorization key stays valid, without an account."""
    key = call.client.key
    key.account = None
    call.hub.key_store.save_key(key)
    return types.auth.LoggedOut()
