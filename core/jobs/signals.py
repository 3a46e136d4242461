"""Signals: what is sent to a job while it runs, and waits there until the job takes it.

    Jobs.signal ─▶ lua/jobs/functions/send_signal.lua ─▶ the list of the job, and its waking if it waits for that

Guarantee: a signal with an id is stored once within a day, in the order of arrival, until an iteration takes it or the
job ends. A kind declares the types of its signals in JSON Schema, so a sender needs no code of the kind.
"""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.errors import Conflict, Invalid
from core.jobs.record import StoredJob
from core.jobs.states import ENDED, JobState
from core.jobs.storage import JobStorage
from core.model.json_form import FAULTS, encoded

Schema = Mapping[str, Any]

_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda data: data is None,
    "boolean": lambda data: isinstance(data, bool),
    "integer": lambda data: isinstance(data, int) and not isinstance(data, bool),
    "number": lambda data: isinstance(data, int | float) and not isinstance(data, bool),
    "string": lambda data: isinstance(data, str),
    "array": lambda data: isinstance(data, list),
    "object": lambda data: isinstance(data, dict),
}

LARGEST_DATA = 64 * 1024
"""Bytes of JSON."""

MOST_SIGNALS = 1000
"""So many wait for one job at most."""

_LONGEST_NAME = 200
_LONGEST_ID = 1000


def schemas_of(types: Mapping[str, Any]) -> dict[str, Schema]:
    """Return the schema of each signal. Raises TypeError for a type that JSON does not have."""
    return {name: msgspec.json.schema(of) for name, of in types.items()}


def check_data(name: str, schema: Schema, data: Any) -> None:
    """Check the data of a signal. Raises Invalid SIGNAL_OF_OTHER_TYPE."""
    if fault := _fault("data", schema, data, schema.get("$defs", {})):
        raise Invalid(
            "SIGNAL_OF_OTHER_TYPE", f"The job does not take these data of the signal {name!r}: {fault}.", "data"
        )


def _fault(place: str, schema: Schema, data: Any, known: Mapping[str, Schema]) -> str:
    """Return what is wrong at a place, "" if nothing is."""
    if "$ref" in schema:
        return _fault(place, known[schema["$ref"].rpartition("/")[2]], data, known)
    if "anyOf" in schema:
        faults = [_fault(place, one, data, known) for one in schema["anyOf"]]
        return "" if "" in faults else " or ".join(dict.fromkeys(faults))
    if "enum" in schema and data not in schema["enum"]:
        return f"{place} is one of {', '.join(map(repr, schema['enum']))}"
    wanted = schema.get("type", "")
    if wanted in _TYPES and not _TYPES[wanted](data):
        return f"{place} is of the type {wanted}"
    if isinstance(data, dict):
        return _fault_of_object(place, schema, data, known)
    items = schema.get("items")
    if isinstance(data, list) and items:
        return next(filter(None, (_fault(f"{place}[{n}]", items, one, known) for n, one in enumerate(data))), "")
    return ""


def _fault_of_object(place: str, schema: Schema, data: Mapping[str, Any], known: Mapping[str, Schema]) -> str:
    if missing := [name for name in schema.get("required", ()) if name not in data]:
        return f"{place}.{missing[0]} is missing"
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name, value in data.items():
        if name not in properties and others is False:
            return f"{place}.{name} is not known"
        of = properties.get(name, others)
        if isinstance(of, Mapping) and (fault := _fault(f"{place}.{name}", of, value, known)):
            return fault
    return ""


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
