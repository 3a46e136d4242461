"""Searches a chat for a message whose answer was lost.

It can prove that the message is there, never that it is not: MAX may store it a moment later. A message counts as found
if the bot sent it since the call began, its text is the same, and it belongs to no other call: no answer has named it,
and this process had no other call with this text to this address under way, and none whose end is unknown. What another
process sent with the same text to the same person within these seconds cannot be distinguished (docs/decisions/0116).
"""

import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from couriers.max.client import FAILURES, MaxClient
from couriers.sending import KnownIds

_LOOKED_AT = 50
_EARLIER_MS = 1000
"""The greatest lag of MAX's clock behind ours."""
_KEPT = 10_000

Json = dict[str, Any]
K = TypeVar("K")


class PresenceCall:
    """One call that sends. `is_alone`: no other one with this text to this address was under way meanwhile."""

    def __init__(self) -> None:
        self.began_ms = time.time_ns() // 1_000_000
        self.is_alone = True


class Presence:
    """Of one courier. `dialogs`: the id of the dialog by the id of the person, as the answers name it."""

    def __init__(self, client: MaxClient, dialogs: KnownIds, bot: str) -> None:
        self._client = client
        self._dialogs = dialogs
        self._bot = bot
        self._under_way: dict[tuple[str, str], list[PresenceCall]] = {}
        self._named: OrderedDict[str, None] = OrderedDict()
        self._unknown: OrderedDict[tuple[str, str], None] = OrderedDict()

    @contextmanager
    def call(self, address: str, text: str) -> Iterator[PresenceCall]:
        """Note a call while it is under way."""
        key, call = (address, text), PresenceCall()
        others = self._under_way.setdefault(key, [])
        others.append(call)
        if len(others) > 1 or key in self._unknown:
            for one in others:
                one.is_alone = False
        try:
            yield call
        finally:
            others.remove(call)
            if not others:
                self._under_way.pop(key, None)

    def learn(self, address: str, message: Json) -> None:
        """Note a message that an answer names, and the id of its dialog."""
        _keep(self._named, message["body"]["mid"])
        chat = message.get("recipient", {}).get("chat_id")
        if isinstance(chat, int) and not address.startswith("-"):
            self._dialogs.store(address, str(chat))

    async def find(self, address: str, text: str, call: PresenceCall) -> str:
        """Return the id of the message, "" if its presence is not proven."""
        found = await self._find(address, text, call)
        if found:
            _keep(self._named, found)
        else:
            _keep(self._unknown, (address, text))
        return found

    async def _find(self, address: str, text: str, call: PresenceCall) -> str:
        chat = address if address.startswith("-") else self._dialogs.get(address)
        if not (chat and text):
            return ""
        try:
            answer = await self._client.request("GET", "messages", {"chat_id": chat, "count": str(_LOOKED_AT)})
        except FAILURES:
            return ""
        found = next((mid for mid in self._mids(answer.body, text, call) if mid not in self._named), "")
        return found if call.is_alone else ""  # another one may have begun meanwhile

    def _mids(self, body: Any, text: str, call: PresenceCall) -> Iterator[str]:
        try:
            for one in reversed(body["messages"]):
                is_ours = str(one["sender"]["user_id"]) == self._bot
                is_new = one["timestamp"] >= call.began_ms - _EARLIER_MS
                if is_ours and is_new and one["body"]["text"].strip() == text.strip():
                    yield str(one["body"]["mid"])
        except (KeyError, TypeError, AttributeError):
            return  # not what MAX promises


def _keep(newest: "OrderedDict[K, None]", key: K) -> None:
    newest[key] = None
    if len(newest) > _KEPT:
        newest.popitem(last=False)
