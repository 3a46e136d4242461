"""Queries of jobs: functions of a kind that answer from what is stored and change nothing.

    class Hunt(Job):
        @query
        def left_today(self, job: Snapshot) -> int:
            return 3 - job.state.sent

A query may come whatever the job does: it works, sleeps, waits or has ended. It runs in a thread of its own, so it
holds up no iteration, and one that does not end is left behind after five seconds.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import timedelta
from inspect import iscoroutinefunction, signature
from threading import Thread
from types import MappingProxyType
from typing import Any

import msgspec

from core.errors import Conflict, Invalid, Refused, SetupError
from core.jobs import Jobs, StoredJob
from core.jobs.queries import LONGEST, AskedQuery, QueryAnswer, unknown_query
from core.jobs.steps import STEP
from core.jobs.views import JobView, view_of
from core.queue import Attempt, Result
from jobs.endings import reason_for_operator, reason_for_user
from jobs.job import Job
from jobs.recording.guard import stored_form

log = logging.getLogger(__name__)

AT_ONCE = 4
"""So many threads answer at once in a process, those that were left behind among them."""

LEASE = timedelta(seconds=2)
"""Another process answers so long after the one that did has died."""

LARGEST_ANSWER = 60 * 1024
"""Bytes of JSON."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A job at one moment. `facts`: as `./ada jobs show` has them; `state`: its own, of the class that it declares;
    `steps`: the results of the steps of the iteration that has begun, by their names.
    """

    facts: JobView
    parameters: Mapping[str, Any]
    state: Any
    steps: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Query:
    """A function that was declared with `query`."""

    function: Callable[..., Any]


def query(function: Callable[..., Any]) -> Query:
    """Declare a query: it gets a `Snapshot`, and the parameters of who asks by their names. Raises SetupError for a
    coroutine: a query waits for nothing.
    """
    if iscoroutinefunction(function):
        raise SetupError(f"the query {function.__qualname__} needs to be `def`, not `async def`")
    return Query(function)


def queries_of(kind: type) -> dict[str, Query]:
    members = ((name, getattr(kind, name, None)) for name in dir(kind))
    return {name: member for name, member in members if isinstance(member, Query)}


class QueryAnswers:
    """The handler of the tubes of queries. `kinds`: those whose code this process has."""

    def __init__(self, jobs: Jobs, kinds: Mapping[str, type[Job]], longest: timedelta = LONGEST) -> None:
        self._jobs = jobs
        self._kinds = kinds
        self._longest = longest
        self._threads: list[Thread] = []

    async def handle(self, attempt: Attempt) -> Result:
        question = msgspec.json.decode(attempt.body, type=AskedQuery)
        return msgspec.json.encode(await self.answer(question)).decode()

    async def answer(self, question: AskedQuery) -> QueryAnswer:
        """Return the answer, or why there is none."""
        kind = self._kinds[question.job.kind]
        try:
            queries = queries_of(kind)
            if question.name not in queries:
                raise unknown_query(kind.name, question.name, list(queries))
            _check_parameters(queries[question.name], question)
            job = await self._jobs.find(question.job)
            steps = await self._jobs.storage.steps(question.job)
            return await self._in_thread(lambda: _answer(kind, queries[question.name], job, steps, question))
        except Refused as refusal:
            return QueryAnswer(code=refusal.code, detail=refusal.detail)

    async def _in_thread(self, call: Callable[[], QueryAnswer]) -> QueryAnswer:
        """Raises Conflict QUERY_TOOK_TOO_LONG, QUERY_FAILED if too many were left behind."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        if len(self._threads) >= AT_ONCE:
            raise Conflict("QUERY_TOOK_TOO_LONG", f"{AT_ONCE} queries before this one have not ended in this process.")
        future: Future[QueryAnswer] = Future()
        future.set_running_or_notify_cancel()
        thread = Thread(target=lambda: future.set_result(call()), name="query", daemon=True)
        self._threads.append(thread)
        thread.start()
        try:
            async with asyncio.timeout(self._longest.total_seconds()):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            detail = f"The query took longer than {self._longest.total_seconds():g} s."
            raise Conflict("QUERY_TOOK_TOO_LONG", detail) from None


def _check_parameters(asked: Query, question: AskedQuery) -> None:
    """Check that a query takes the parameters it is asked with. Raises Invalid QUERY_MALFORMED."""
    try:
        signature(asked.function).bind(None, None, **question.parameters)
    except TypeError as fault:
        detail = f"The query {question.name!r} does not take these parameters: {fault}."
        raise Invalid("QUERY_MALFORMED", detail, "parameters") from None


def _answer(
    kind: type[Job], asked: Query, job: StoredJob, steps: Mapping[str, str], question: AskedQuery
) -> QueryAnswer:
    """Call a query. Whatever it raises is the answer."""
    try:
        snapshot = _snapshot(kind, job, steps)
        before = _stored(kind, snapshot)
        answer = asked.function(kind(), snapshot, **question.parameters)
        result = stored_form(f"the query {question.name}", answer, LARGEST_ANSWER)
        after = _stored(kind, snapshot)
    except BaseException as fault:  # noqa: BLE001 - the code of a job
        log.warning("job %s: the query %s failed: %s", job.id.name, question.name, reason_for_operator(fault))
        return QueryAnswer(code="QUERY_FAILED", detail=f"The query has failed: {reason_for_user(fault)}.")
    if after != before:
        detail = f"The query {question.name!r} has changed the state or the parameters: it may only read them."
        return QueryAnswer(code="QUERY_CHANGED_STATE", detail=detail)
    return QueryAnswer(result)


def _snapshot(kind: type[Job], job: StoredJob, steps: Mapping[str, str]) -> Snapshot:
    results = {name.removeprefix(STEP): text for name, text in steps.items() if name.startswith(STEP)}
    decoded = {name: msgspec.json.decode(text) for name, text in results.items()}
    state = kind.state_class().load(job.own or job.record.own)
    return Snapshot(view_of(job), job.record.parameters, state, MappingProxyType(decoded))


def _stored(kind: type[Job], snapshot: Snapshot) -> bytes:
    return msgspec.json.encode((snapshot.parameters, kind.state_class().dump(snapshot.state)))
