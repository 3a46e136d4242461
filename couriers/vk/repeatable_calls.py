"""Calls of VK's API that may be made twice, with what their errors mean for the message."""

from dataclasses import replace
from typing import Any

from couriers.sending import Deferred, Halted, Outcome, Reason, Rejected, Scope
from couriers.vk import outcomes
from couriers.vk.client import FAILURES, VkClient
from couriers.vk.library import VKAPIError


class VkCallRefused(Exception):
    """VK refuses this call for good; other calls may go on."""


class VkCallDeferred(Exception):
    """This call cannot be made now, so the message is not sent now. `outcome`: what that means for the message."""

    def __init__(self, outcome: Deferred | Halted) -> None:
        super().__init__(outcome.detail)
        self.outcome = outcome


class RepeatableCalls:
    """One per courier."""

    def __init__(self, client: VkClient) -> None:
        self._client = client

    async def call(self, method: str, **parameters: Any) -> Any:
        """Return the response of a call. Raises CallRefused, CallDeferred."""
        outcome: Outcome = outcomes.NO_ANSWER
        try:
            body: Any = await self._client.request(method, parameters)
            if isinstance(body, dict) and "response" in body:
                return body["response"]
        except VKAPIError as error:
            outcome = outcomes.peer_outcome(error.code)
        except FAILURES as error:
            outcome = outcomes.outcome_of_error(error)
        if isinstance(outcome, Rejected):
            raise VkCallRefused(outcome.detail)
        raise VkCallDeferred(_repeatable(outcome))

    async def upload(self, url: str, field: str, name: str, media_type: str, data: bytes) -> dict[str, Any]:
        """Transfer a file to an address that VK named. Raises CallRefused, CallDeferred."""
        try:
            answer = await self._client.upload(url, field, name, media_type, data)
        except FAILURES as error:
            raise VkCallDeferred(_no_host(error)) from None
        if not isinstance(answer, dict) or answer.get("error"):
            raise VkCallRefused("the upload was refused")
        return answer


def _no_host(error: Exception) -> Deferred:
    """Return the outcome for a host of uploads that cannot be reached: other messages go on, by another host."""
    return Deferred(Reason.PROVIDER_DOWN, None, Scope.RECIPIENT, type(error).__name__)


def _repeatable(outcome: Outcome) -> Deferred | Halted:
    """Return what an outcome means if the call may be made twice: nothing is unclear then. A limit per chat is meant
    for messages.send.
    """
    match outcome:
        case Halted():
            return outcome
        case Deferred(scope=Scope.CHAT):
            return replace(outcome, scope=Scope.ACCOUNT, is_guess=False)
        case Deferred():
            return outcome
    return Deferred(Reason.PROVIDER_DOWN, None, Scope.RECIPIENT, getattr(outcome, "detail", ""))
