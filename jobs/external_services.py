"""Outside services for iterations: the tokens of sign-ins, and language models within a budget."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from core.errors import SetupError
from core.jobs import Actor, StoredJob
from core.jobs.record import zone_of
from core.redis.store import Store
from core.sentence import sentence
from jobs.signals import Pause
from providers.models import Models, Prompt
from providers.sign_in import KeyLost, SignInExpired, Tokens

log = logging.getLogger(__name__)

_AGAIN = timedelta(minutes=5)
_KEPT_MS = 2 * 86_400_000


@dataclass(frozen=True, slots=True)
class Outside:
    """Calls services for iterations. `budget`: tokens of models for the jobs of a user in a day; 0: no limit.
    `played`: kind → name of a step or an effect, `access_token` or `complete` → what a test says that it returns, in
    place of the call.
    """

    store: Store
    tokens: Tokens | None = None
    models: Models = field(default_factory=Models.not_set_up)
    budget: int = 0
    played: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def call(self, job: StoredJob, name: str, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """Return the call of a step or an effect, or one that returns what a test says."""
        answers = self.played.get(job.id.kind, {})
        if name not in answers:
            return call

        async def answer(*_arguments: Any, **_options: Any) -> Any:
            return answers[name]

        return answer

    async def access_token(self, job: StoredJob, service: str) -> str:
        """Return the user's token for a service. Raises Pause if the user has to sign in again, and for some minutes if
        the key of the tokens is missing; SetupError.
        """
        if (token := self.played.get(job.id.kind, {}).get("access_token")) is not None:
            return str(token)
        if self.tokens is None:
            raise SetupError("ADA_SIGN_IN is not set: there is no service to sign in to")
        try:
            return await self.tokens.access_token(job.id.tenant, service, job.id.user)
        except SignInExpired:
            raise Pause(Actor.SIGN_IN, sentence("job_sign_in", service=service), service=service) from None
        except KeyLost as fault:
            log.error("job %s: %s", job.id.name, fault)
            raise Pause(Actor.LIMIT, sentence("job_sign_ins_lost"), datetime.now(UTC) + _AGAIN) from None

    async def complete(self, job: StoredJob, prompt: Prompt, now: datetime) -> str:
        """Return the text of a language model. Raises Pause until midnight if the user's budget is used up; AiError."""
        if (text := self.played.get(job.id.kind, {}).get("complete")) is not None:
            return str(text)
        local = now.astimezone(zone_of(job.record.timezone))
        key = self.store.tenant_key("model_budget", job.id.tenant, job.id.user, local.strftime("%Y-%m-%d"))
        used = int(await self.store.command("GET", key) or 0) if self.budget else 0
        if self.budget and used >= self.budget:
            midnight = (local + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
            raise Pause(Actor.LIMIT, sentence("job_model_budget", count=self.budget), midnight)
        completion = await self.models.complete(prompt)
        if self.budget and completion.tokens:
            await self.store.write_lasting(_KEPT_MS, "INCRBY", key, completion.tokens)
        return completion.text
