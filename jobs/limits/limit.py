"""What the class of a job declares of its bounds. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from core.errors import SetupError
from core.jobs import StoredJob

_USER = "user"
_PARAMETER = "parameters."
_KEY = re.compile(r"(user|parameters\..+)?", re.DOTALL)
_HIGHEST_RATE = 10_000


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound over all processes. `concurrency`: how many iterations run at once; `rate`: how many calls that name this
    limit begin in the time `per`. `key`: "" for one bound for all jobs; "user" for one for each person;
    "parameters.account" for one for each value of this parameter in a tenant. `name`: kinds with a limit of the same
    name share it; "" stands for the kind alone.
    """

    name: str = ""
    concurrency: int | None = None
    rate: int | None = None
    per: timedelta = timedelta(minutes=1)
    key: str = ""

    def check(self) -> None:
        """Check whether the limit can be kept. Raises SetupError."""
        if self.concurrency is None and (self.rate is None or not self.name):
            raise SetupError(f"the limit {self.name!r} needs `concurrency`, or a `name` and a `rate`")
        if self.concurrency is not None and self.concurrency < 1:
            raise SetupError(f"`concurrency` of the limit {self.name!r} is a number from 1; it is {self.concurrency!r}")
        if self.rate is not None and not 1 <= self.rate <= _HIGHEST_RATE:
            raise SetupError(f"`rate` of the limit {self.name!r} is from 1 to {_HIGHEST_RATE}; it is {self.rate!r}")
        if self.per < timedelta(milliseconds=1):
            raise SetupError(f"`per` of the limit {self.name!r} is at least a millisecond; it is {self.per}")
        if not _KEY.fullmatch(self.key):
            raise SetupError(f"`key` of the limit {self.name!r} is `user` or `parameters.NAME`; it is {self.key!r}")

    def id_of(self, job: StoredJob) -> str:
        """Return the name in the store of the bound that holds for a job."""
        name = f"limit:{self.name}" if self.name else f"kind:{job.id.kind}"
        return f"{name}/{self.key}/{job.id.tenant}/{self._value(job)}" if self.key else name

    def shown_for(self, job: StoredJob) -> str:
        """Return the bound as it is shown, for example `'shop' of parameters.account 42`."""
        name = repr(self.name or job.id.kind)
        return f"{name} of {self.key} {self._value(job)}" if self.key else name

    def _value(self, job: StoredJob) -> Any:
        """A job without the parameter shares its bound with all that have none."""
        if self.key == _USER:
            return job.id.user
        return job.record.parameters.get(self.key.removeprefix(_PARAMETER), "")


def check_limits(limits: Iterable[Limit]) -> None:
    """Check the limits of a class. Raises SetupError if one cannot be kept, or two have the same name and key, or a
    rate and the same name.
    """
    seen = set[tuple[str, str]]()
    for limit in limits:
        limit.check()
        place = (limit.name, "rate" if limit.rate else limit.key)
        if place in seen:
            raise SetupError(f"two limits of one job have the name {limit.name!r} and the same key, or a rate")
        seen.add(place)
