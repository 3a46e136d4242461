"""Signals: what is sent to a job while it runs, and waits there until the job takes it.

    Jobs.signal ─▶ lua/jobs/functions/send_signal.lua ─▶ the list of the job, and its waking if it waits for that

Guarantee: a signal with an id is stored once within a day, in the order of arrival, until an iteration takes it or the
job ends.
"""

from typing import Any
from uuid import uuid4

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.errors import Conflict, Invalid
from core.jobs.json_form import FAULTS, encoded
from core.jobs.record import StoredJob
from core.jobs.states import ENDED, JobState
from core.jobs.storage import JobStorage

LARGEST_DATA = 64 * 1024
"""Bytes of JSON."""

MOST_SIGNALS = 1000
"""So many wait for one job at most."""

_LONGEST_NAME = 200
_LONGEST_ID = 1000


class Signal(Struct, frozen=True):
    """`id`: distinguishes it from others; a repetition has the same; `data`: JSON; `at`: when it was sent (ms)."""

    id: str
    name: str
    data: Any
    at: int

    def encode(self) -> str:
        return msgspec.json.encode(self).decode()


def checked_signal(name: str, data: Any, signal_id: str, at: int) -> Signal:
    """Return a signal that may be stored. Raises Invalid SIGNAL_MALFORMED, SIGNAL_TOO_LARGE."""
    if not (0 < len(name) <= _LONGEST_NAME and name.isprintable()) or len(signal_id) > _LONGEST_ID:
        detail = f"A signal has a name of 1 to {_LONGEST_NAME} printable characters."
        raise Invalid("SIGNAL_MALFORMED", detail, "name")
    try:
        text = encoded(data)
    except FAULTS as fault:
        raise Invalid("SIGNAL_MALFORMED", f"The data of a signal are what JSON has: {fault}.", "data") from None
    if len(text) > LARGEST_DATA:
        raise Invalid("SIGNAL_TOO_LARGE", f"The data of a signal have at most {LARGEST_DATA} bytes.", "data")
    return Signal(signal_id or uuid4().hex, name, msgspec.json.decode(text), at)


async def send(storage: JobStorage, job: StoredJob, signal: Signal, log: str) -> bool:
    """Store a signal for a job, and wake the job if it waits for it. Returns False if the job has changed since it was
    read. Raises Conflict JOB_IN_OTHER_STATE, TOO_MANY_SIGNALS.
    """
    if job.record.state in (JobState.STOPPING, *ENDED):
        raise Conflict("JOB_IN_OTHER_STATE", f"The job is {job.record.state}: it gets no signals.")
    woken = _woken_by(signal, job)
    answer = await storage.send_signal(
        woken or job, signal.id, signal.encode(), MOST_SIGNALS, log, wakes=woken is not None
    )
    if answer == "full":
        raise Conflict("TOO_MANY_SIGNALS", f"{MOST_SIGNALS} signals wait for this job.")
    return answer == "sent"


def _woken_by(signal: Signal, job: StoredJob) -> StoredJob | None:
    """Return the job as it is due now if it waits for the signal; otherwise None."""
    record = job.record
    if record.state is not JobState.RUNNING or not record.suspended or signal.name not in record.waits_for:
        return None
    return StoredJob(job.id, replace(record, generation=record.generation + 1, due=signal.at), job.version)
