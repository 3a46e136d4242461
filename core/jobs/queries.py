"""Queries: a person asks a running job something, and a process that has its code answers from what is stored.

    ask ─▶ call of the tube `job-queries.KIND.NAME` (K-20) ─▶ jobs/queries.py in a process of this kind ─▶ the answer

Nothing of the job changes, and its iteration is not disturbed: it need not run.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec
from msgspec import Struct

from core.errors import Conflict, Invalid, NotFound, Refused
from core.jobs.jobs import Jobs
from core.jobs.record import JobId, checked_parameters
from core.queue.client import CallFailed, QueueClient

LONGEST = timedelta(seconds=5)
"""A query that takes longer has failed."""

TIMEOUT = timedelta(seconds=10)
"""The caller waits so long for an answer."""


class AskedQuery(Struct, frozen=True):
    """A query to a job, with its parameters."""

    job: JobId
    name: str
    parameters: dict[str, Any]


class QueryAnswer(Struct, frozen=True, omit_defaults=True):
    """`result`: JSON. `code`, `detail`: why there is none."""

    result: msgspec.Raw = msgspec.Raw(b"null")
    code: str = ""
    detail: str = ""

    def value(self) -> Any:
        """Return the result. Raises what the process that has answered has found."""
        if self.code:
            raise _CLASSES.get(self.code, Conflict)(self.code, self.detail)
        return msgspec.json.decode(self.result)


_CLASSES: Mapping[str, type[Refused]] = {
    "QUERY_UNKNOWN": NotFound,
    "JOB_NOT_FOUND": NotFound,
    "QUERY_MALFORMED": Invalid,
}


def tube_of_query(kind: str, name: str) -> str:
    """Return the tube of a query: only processes that have it take its tasks, also beside other code."""
    return f"job-queries.{kind}.{name}"


async def ask(
    client: QueueClient,
    jobs: Jobs,
    job_id: JobId,
    name: str,
    parameters: Mapping[str, Any],
    timeout: timedelta = TIMEOUT,
) -> Any:
    """Return what a job answers to a query.

    Raises NotFound JOB_NOT_FOUND, QUERY_UNKNOWN; Invalid QUERY_MALFORMED, PARAMETERS_TOO_LARGE; Conflict
    QUERY_UNANSWERED if no process of the kind is up, or none has answered in time, QUERY_FAILED, QUERY_TOOK_TOO_LONG,
    QUERY_CHANGED_STATE.
    """
    await jobs.find(job_id)
    await _check_asked(jobs, job_id.kind, name)
    question = AskedQuery(job_id, name, checked_parameters(parameters))
    body = msgspec.json.encode(question).decode()
    try:
        answer = await client.call(tube_of_query(job_id.kind, name), body, timeout, tenant=job_id.tenant)
    except (TimeoutError, CallFailed):
        seconds = f"{timeout.total_seconds():g} s"
        detail = f"No process that runs jobs of the kind {job_id.kind!r} has answered in {seconds}. Ask again."
        raise Conflict("QUERY_UNANSWERED", detail) from None
    return msgspec.json.decode(answer, type=QueryAnswer).value()


async def _check_asked(jobs: Jobs, kind: str, name: str) -> None:
    """Check that a process with this query is up. Raises NotFound QUERY_UNKNOWN; Conflict QUERY_UNANSWERED."""
    if waiting := await jobs.kinds.waiting(kind):
        raise Conflict("QUERY_UNANSWERED", f"The query {waiting}.")
    known = await jobs.kinds.queries(kind)
    if name not in known:
        raise unknown_query(kind, name, known)


def unknown_query(kind: str, name: str, known: list[str]) -> NotFound:
    """Return the error of a query that the code of a kind does not have."""
    has = f"; it has: {', '.join(known)}" if known else " and no other"
    return NotFound("QUERY_UNKNOWN", f"The code of {kind!r} has no query {name[:100]!r}{has}.")
