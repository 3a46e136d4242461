"""Calls before the message is sent: uploads, edits, removals. They may be made twice, so nothing is unclear then."""

from collections.abc import Mapping
from typing import Any

from couriers.max import outcomes
from couriers.max.client import FAILURES, MaxClient
from couriers.max.pauses import Throttles
from couriers.sending import Deferred, Halted, Outcome, Reason, Rejected, Scope, Sent

Json = dict[str, Any]


class MaxCallRefused(Exception):
    """MAX refuses this call for good; other calls may go on."""


class MaxCallDeferred(Exception):
    """This call cannot be made now, so the message is not sent now. `outcome`: what that means for the message."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(getattr(outcome, "detail", ""))
        self.outcome = outcome


class MaxCaller:
    """One per courier."""

    def __init__(self, client: MaxClient, throttles: Throttles) -> None:
        self._client = client
        self._throttles = throttles

    async def call(
        self, method: str, path: str, query: Mapping[str, str], body: Json | None = None, address: str = ""
    ) -> Json:
        """Return the result of a call that concerns this address. Raises CallRefused, CallDeferred."""
        try:
            answer = await self._client.request(method, path, query, body)
        except FAILURES as error:
            raise MaxCallDeferred(_repeatable(outcomes.outcome_of_error(error))) from None
        outcome = outcomes.outcome_of(answer)
        is_done = answer.status == 200 and isinstance(answer.body, dict) and not answer.body.get("code")
        if isinstance(outcome, Sent) or is_done:
            return dict(answer.body)
        if isinstance(outcome, Rejected):
            raise MaxCallRefused(outcome.detail)
        if isinstance(outcome, Deferred) and outcome.reason is Reason.THROTTLED:
            outcome = self._throttles.refused(address, outcome)
        raise MaxCallDeferred(_repeatable(outcome))

    async def upload(self, url: str, name: str, media_type: str, data: bytes) -> Any:
        """Transfer a file to an address that MAX named. Raises CallRefused, CallDeferred."""
        try:
            answer = await self._client.upload(url, name, media_type, data)
        except FAILURES as error:
            raise MaxCallDeferred(_no_host(error)) from None
        if answer.status != 200:
            raise MaxCallRefused(f"the upload was refused with {answer.status}")
        return answer.body


def _no_host(error: Exception) -> Deferred:
    """Return the outcome for a host of uploads that cannot be reached: other messages go on, by another host."""
    return Deferred(Reason.PROVIDER_DOWN, None, Scope.RECIPIENT, type(error).__name__)


def _repeatable(outcome: Outcome) -> Outcome:
    if isinstance(outcome, Halted | Deferred):
        return outcome
    return Deferred(Reason.PROVIDER_DOWN, None, Scope.RECIPIENT, getattr(outcome, "detail", ""))
