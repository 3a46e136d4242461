"""The result of a delivery for the chain of the step that ordered it."""

from collections.abc import Sequence
from dataclasses import replace

from core.deliveries.deliveries import Deliveries
from core.errors import NotFound
from core.model.history import History, OutcomeRecord
from core.model.history_key import HistoryKey
from core.model.states import Status, Verdict
from scenarios.bot.data import Data
from scenarios.context import Asking, Context
from scenarios.engine import Ending, State, Values, completed, failed, unknown
from scenarios.words import placed, sentence, together


def stored(key: HistoryKey, people: int) -> Ending:
    """Return the ending of a step whose delivery is due later: it completes when the delivery is stored."""
    return completed({"delivery_id": key.id, "verdict": str(Verdict.SCHEDULED), "reached": 0, "people": people})


def ending_of_one(key: HistoryKey, outcome: OutcomeRecord) -> Ending:
    """Return the same as `ending_of` for a delivery whose only recipient was reached with this outcome."""
    message = _message(outcome.reference) if outcome.reference else {}
    return completed({"delivery_id": key.id, "verdict": str(Verdict.ALL_REACHED), "reached": 1, "people": 1, **message})


async def ended(deliveries: Deliveries, key: HistoryKey, tenant: str) -> Ending | None:
    """Return the end of a step by its delivery; None if that is under way."""
    try:
        history = await deliveries.read(key, tenant)
    except NotFound:
        return unknown("HISTORY_NOT_FOUND", sentence("delivery_not_stored_any"))
    return ending_of(history) if history.finished_at else None


def of_parts(endings: Sequence[Ending]) -> Ending:
    """Return the end of a step whose message has several deliveries: completed if a recipient of any was reached. The
    delivery is the first one; its verdict is `some_reached` if theirs differ.
    """
    results = [one.returned.results for one in endings]
    verdicts = {one["verdict"] for one in results if "verdict" in one}
    sums = {name: sum(int(one.get(name) or 0) for one in results) for name in ("people", "reached")}
    verdict = verdicts.pop() if len(verdicts) == 1 else str(Verdict.SOME_REACHED)
    worst = next(
        (one for state in (State.COMPLETED, State.UNKNOWN) for one in endings if one.state is state), endings[0]
    )
    return replace(worst, returned=Values({**results[0], **sums, "verdict": verdict}))


def arrived(context: Context, asking: Asking, sent: Ending) -> Asking | Ending:
    """Return what follows from the end of a question's delivery: the step waits for the answer, or ends as the delivery
    did. A reminder that did not arrive ends nothing: the person has the question.
    """
    if sent.state is State.COMPLETED or asking.reminders:
        if sent.state is not State.COMPLETED:
            context.warn(placed("the reminder did not arrive", sent.error))
        return replace(asking, verdict=str(sent.returned.results.get("verdict") or sent.state))
    return sent


def ending_of(history: History) -> Ending:
    """Return the end of a step by the end of its delivery: completed if a recipient was reached;
    unknown if none is known to be reached, but one may be.

    Results: `delivery_id`, `verdict`, `reached` and `people` (how many it reached, of how many), and for one person
    `last_message_id`.
    """
    results = {
        "delivery_id": history.key.id,
        "verdict": str(history.verdict),
        "reached": history.counts.get("reached", 0),
        "people": history.counts.get("recipients", 0),
        **_message_id(history),
    }
    if results["reached"]:
        return completed(results)
    if any(outcome.status is Status.UNKNOWN for outcome in _outcomes(history)):
        return unknown("OUTCOME_UNKNOWN", sentence("unknown_whether_message_was"), results)
    causes = list(dict.fromkeys(outcome.reason or str(outcome.status) for outcome in _outcomes(history)))
    causes = causes or [str(history.verdict)]
    why = together([sentence(f"not_sent_{cause}") for cause in causes])
    code = causes[0].upper() if len(causes) == 1 else "MESSAGE_NOT_SENT"
    return failed(code, sentence("message_was_not_sent", why=why), results)


def _message_id(history: History) -> dict[str, Data]:
    """Return the id of the message that was sent last, if the delivery is for one person; the provider's."""
    found = [outcome.reference for outcome in _outcomes(history) if outcome.reference]
    if len(history.recipients) != 1 or not found:
        return {}
    return _message(found[-1])


def _message(reference: str) -> dict[str, Data]:
    """Return the id of the last message. A reference is the id of a message, or the ids of several, separated by
    commas.
    """
    last = reference.rpartition(",")[2]
    return {"last_message_id": int(last) if last.isascii() and last.isdigit() else last}


def _outcomes(history: History) -> list[OutcomeRecord]:
    return [outcome for one in history.recipients for outcome in one.outcomes.values()]
