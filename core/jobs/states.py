"""The states of a job, and who may change them. Pure: one table, from which docs/jobs-states.md is generated.

A shutdown is no change of state: a job that runs stays `running`, and its iteration goes on in another process.
"""

from enum import StrEnum

from core.errors import Conflict, Forbidden


class JobState(StrEnum):
    """`finished`, `stopped` and `failed` jobs do nothing until they are started again. `finished`: it has reached its
    end by itself. `stopping`: a person has stopped it, and its compensations take back what the iteration has done.
    """

    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"


WORKING = (JobState.RUNNING, JobState.STOPPING)
"""The states in which a job has a task."""

ENDED = (JobState.STOPPED, JobState.FINISHED, JobState.FAILED)


class Actor(StrEnum):
    """The actors that pause or resume, in rising order: a pause is ended or replaced only by an actor of the same or
    higher order. `limit`: a limit that ends by itself; `sign_in`: the sign-in to the outside service has expired.
    """

    LIMIT = "limit"
    SIGN_IN = "sign_in"
    USER = "user"
    ADMIN = "admin"


class Verb(StrEnum):
    """The verbs that change a state."""

    START = "start"
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    TAKE_BACK = "take_back"
    COMPENSATE = "compensate"
    ABANDON = "abandon"
    RESET = "reset"
    CHANGE = "change"
    FAIL = "fail"
    FINISH = "finish"


NEXT: dict[Verb, dict[JobState | None, JobState]] = {
    Verb.START: {None: JobState.RUNNING, **dict.fromkeys(ENDED, JobState.RUNNING)},
    Verb.PAUSE: {JobState.RUNNING: JobState.PAUSED, JobState.PAUSED: JobState.PAUSED},
    Verb.RESUME: {JobState.PAUSED: JobState.RUNNING},
    Verb.STOP: {
        JobState.RUNNING: JobState.STOPPED,
        JobState.PAUSED: JobState.STOPPED,
        JobState.FAILED: JobState.STOPPED,
    },
    Verb.TAKE_BACK: {JobState.RUNNING: JobState.STOPPING, JobState.PAUSED: JobState.STOPPING},
    Verb.COMPENSATE: {JobState.STOPPING: JobState.STOPPED},
    Verb.ABANDON: {
        JobState.RUNNING: JobState.STOPPED,
        JobState.PAUSED: JobState.STOPPED,
        JobState.STOPPING: JobState.STOPPED,
        JobState.FAILED: JobState.STOPPED,
    },
    Verb.RESET: {
        JobState.RUNNING: JobState.RUNNING,
        JobState.PAUSED: JobState.PAUSED,
        **dict.fromkeys(ENDED, JobState.RUNNING),
    },
    Verb.CHANGE: {state: state for state in JobState},
    Verb.FAIL: {JobState.RUNNING: JobState.FAILED, JobState.STOPPING: JobState.FAILED},
    Verb.FINISH: {JobState.RUNNING: JobState.FINISHED},
}
"""For each verb, the states it applies to and the state that follows. `None`: the job does not exist yet."""

VERB_MEANINGS = {
    Verb.START: "a user starts the job; the state is stored before any work begins",
    Verb.PAUSE: "a user, an administrator, a limit or an expired sign-in pauses it; a pause of a higher actor replaces "
    "one of a lower",
    Verb.RESUME: "who paused it, or a higher actor, lets it go on where it was",
    Verb.STOP: "a user or an administrator ends it; a user's stop does not end the pause of an administrator, so that "
    "only an administrator starts the job again",
    Verb.TAKE_BACK: "as stop, if the iteration has begun and its code names compensations: they are called first",
    Verb.COMPENSATE: "the compensations have taken back what the iteration had done",
    Verb.ABANDON: "as stop, without compensations",
    Verb.RESET: "the iteration is repeated from one of its steps; a job that has ended begins again with that",
    Verb.CHANGE: "the parameters are changed; the next iteration works with them",
    Verb.FAIL: "an iteration, or one of its compensations, failed for good",
    Verb.FINISH: "the job has reached its end",
}

_ORDER = list(Actor)


def next_state(verb: Verb, state: JobState | None) -> JobState:
    """Return the state that follows. Raises Conflict JOB_ALREADY_RUNNING or JOB_IN_OTHER_STATE."""
    if state in NEXT[verb]:
        return NEXT[verb][state]
    if verb is Verb.START:
        raise Conflict("JOB_ALREADY_RUNNING", f"The job was started before and is {state}.")
    raise Conflict("JOB_IN_OTHER_STATE", f"The job is {state or 'unknown'}: it cannot {verb}.")


def may_override(actor: Actor, paused_by: Actor) -> bool:
    """Return whether `actor` may end or replace a pause of `paused_by`."""
    return _ORDER.index(actor) >= _ORDER.index(paused_by)


def check_actor(actor: Actor, paused_by: Actor | None) -> None:
    """Check whether an actor may change a job that another one has paused. Raises Forbidden JOB_PAUSED_BY_OTHER if a
    higher actor has paused the job.
    """
    if paused_by is not None and not may_override(actor, paused_by):
        raise Forbidden("JOB_PAUSED_BY_OTHER", f"The job was paused by: {paused_by}.")
