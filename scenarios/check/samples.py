"""Sample results of actions for a dry run: the same names and kinds of values as on a server where they succeed. Pure.

What the author has written is returned as it was written; what only a provider or the store knows is a sample.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from core.errors import Invalid, Refused
from core.jobs import Actor, JobId, JobRecord, JobState, StoredJob
from core.model.clock import to_ms
from core.model.states import Verdict
from scenarios.actions.groups.invite_link import links_in
from scenarios.actions.groups.restrict import named_in, restricted_for
from scenarios.actions.jobs import job_texts
from scenarios.actions.people import request_management
from scenarios.actions.people.request import request_of
from scenarios.context.arguments import duration_of, flag_of, moment_of, text_of
from scenarios.engine import Ending
from scenarios.engine.results import completed, failed
from scenarios.placeholders.attributes import Prepared
from scenarios.schema import ActionType
from scenarios.schema.promo import ALL_PEOPLE
from scenarios.stores.promo import ALWAYS, Promo, results_of
from scenarios.stores.promo import listed as listed_promos
from scenarios.stores.requests import Request, listed, shown

NOW = datetime(2030, 1, 1, tzinfo=UTC)
NUMBER = 1
CODE = "SAMPLE-22"
_SAMPLES: Mapping[str, Any] = {
    **dict.fromkeys(("last_message_id", "cancelled"), NUMBER),
    "invite_link": "https://t.me/+sample",
    "file_path": "speech.ogg",
    "qr_file": "qr.png",
    "tokens_used": 0,
}
"""Result → what a provider or the store returns here. Any other one is its name in brackets."""

OF_PEOPLE: Mapping[str, tuple[str, ...]] = {
    "request": ("request_text",),
    "from_speech": ("speech_to_text",),
    **dict.fromkeys(("completion", "gigachat"), ("response_text", "response_text_html", "response_text_md2")),
    "job": ("job_reason",),
    "history": ("history_text", "messages"),
    **dict.fromkeys(("create_promo", "modify_promo", "check_promo"), ("promo_name", "promo_data", "promo_code")),
}
"""The results that a person, or a model for a person, has written."""

Results = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sampled:
    """One action: `written` are its fields as in the file, `kind` its type."""

    kind: ActionType
    prepared: Prepared
    written: Mapping[str, Any]
    event: Mapping[str, Any]

    @property
    def own(self) -> Mapping[str, Any]:
        return self.prepared.own

    @property
    def seen(self) -> Mapping[str, Any]:
        return self.prepared.seen

    def echo(self, names: Iterable[str]) -> Results:
        """Return results by name: as the author wrote them, otherwise samples."""
        written = {name: self.own[name] for name in names if self.own.get(name) not in (None, "")}
        return {name: written.get(name, _SAMPLES.get(name, f"[{name}]")) for name in names}


class _Fails(Exception):
    """The action fails for this reason."""


def ending_of(sampled: Sampled) -> Ending:
    """Return the ending of an action that succeeds, unless it cannot with what is given."""
    make = _RESULTS.get(sampled.kind.name)
    names = [name for name in sampled.kind.returns if name.isidentifier()]
    try:
        results = make(sampled) if make else sampled.echo(names)
    except _Fails as reason:
        return failed(str(reason))
    except Refused as refused:
        return failed(f"{refused.code}: {refused.detail}")
    return completed(results, from_person=results.keys() & OF_PEOPLE.get(sampled.kind.name, ()))


def _send(sampled: Sampled) -> Results:
    if any(sampled.own.get(name) not in (None, "") for name in ("delay", "deliver_at")):
        return {"delivery_id": "[delivery_id]", "verdict": str(Verdict.SCHEDULED), "reached": 0}
    results = {"delivery_id": "[delivery_id]", "verdict": str(Verdict.ALL_REACHED), "reached": 1}
    return {**results, **sampled.echo(["last_message_id"])}


def _copy(sampled: Sampled) -> Results:
    if not text_of(sampled.own, "chat_to"):
        raise Invalid("FIELD_INVALID", "chat_to is missing: the id of the chat to copy to", "chat_to")
    return {
        "delivery_id": "[delivery_id]",
        "verdict": str(Verdict.ALL_REACHED),
        "reached": 1,
        "last_message_id": NUMBER,
    }


def _history(sampled: Sampled) -> Results:
    """Return one message of the person."""
    by = text_of(sampled.event, "first_name") or text_of(sampled.event, "user_id")
    said = {"by": by, "is_bot": False, "text": "[text]", "date": NOW.isoformat(), "message_id": NUMBER}
    return {"history_text": f"{by}: [text]", "messages": [said], "messages_processed": 1}


def _answer_inline(sampled: Sampled) -> Results:
    if not text_of(sampled.seen, "inline_query_id"):
        raise Invalid("NO_QUERY", "answer_inline answers an inline query; this event is none")
    offered = sampled.seen.get("results")
    return {"results_offered": len(offered) if isinstance(offered, list) else int(offered not in (None, ""))}


def _restrict(sampled: Sampled) -> Results:
    person, name = named_in(sampled.prepared, sampled.written)
    may_write = flag_of(sampled.seen, "can_send_messages")
    duration = None if may_write else restricted_for(sampled.prepared, sampled.written)
    results = {"restrict_user_id": NUMBER if person is None else person, "restrict_username": name}
    return {**results, "duration_seconds": int(duration.total_seconds())} if duration else results


def _request(sampled: Sampled) -> Results:
    return {"request_text": sampled.seen.get("event_text", ""), "request_id": NUMBER}


def _request_management(sampled: Sampled) -> Results:
    """Return sample requests. What people have asked is not known; the person of the event stands for them."""
    new = request_of(str(sampled.event.get("channel", "")), {**sampled.seen, "event_text": "[request_text]"})
    written = text_of(sampled.seen, "event_text")
    if text_of(sampled.seen, "operation") != "details":
        return _found(sampled, listed([Request(**_fields(new), id=NUMBER, at=to_ms(NOW))], UTC))
    if (number := request_management.NUMBER.fullmatch(written)) is None:
        raise _Fails(f"there is no request {written[:50]!r}")
    return _found(sampled, shown(Request(**_fields(new), id=int(number[1]), at=to_ms(NOW)), UTC))


def _found(sampled: Sampled, text: str) -> Results:
    """Return the text under each of its names."""
    return dict.fromkeys(sampled.kind.returns, text)


def _fields(new: Any) -> dict[str, Any]:
    return {name: getattr(new, name) for name in new.__struct_fields__}


def _invite_link(sampled: Sampled) -> Results:
    if not flag_of(sampled.seen, "cleanup"):
        return sampled.echo(["invite_link"])
    links = links_in(text_of(sampled.seen, "event_text"))
    if not links:
        raise _Fails("there is no invite link in the text")
    return {"invite_links_deleted": links, "invite_links_failed": []}


def promo_of(sampled: Sampled, now: datetime = NOW) -> Promo:
    """Return the promo code that the author describes, by default one without an end for the person of the event."""
    own = sampled.own
    starts, ends = moment_of(own, "started_at", UTC) or now, moment_of(own, "expired_at", UTC)
    if (lifetime := duration_of(own, "expire")) is not None:
        ends = starts + lifetime
    if flag_of(own, "permanent"):
        starts, ends = ALWAYS
    user = next((text_of(own, name) for name in ("target_user_id", "user_id") if name in own), None)
    user = text_of(sampled.event, "user_id") if user is None else "" if user.lower() in ALL_PEOPLE else user
    code = text_of(own, "promo_code") or CODE
    return Promo(code, text_of(sampled.seen, "promo_name"), user, to_ms(starts), to_ms(ends) if ends else 0, id=NUMBER)


def _promo_results(sampled: Sampled) -> Results:
    return results_of(promo_of(sampled), UTC)


def _check_promo(sampled: Sampled) -> Results:
    code = text_of(sampled.seen, "promo_code") or text_of(sampled.seen, "event_text")
    found = {**_promo_results(sampled), "promo_code": code}
    return {**found, "promo_available": True, "promo_data": found}


def _promo_management(sampled: Sampled) -> Results:
    return _found(sampled, listed_promos([promo_of(sampled)], UTC))


_STATES = {"pause": JobState.PAUSED, "stop": JobState.STOPPED}


def _job(sampled: Sampled) -> Results:
    operation = text_of(sampled.own, "operation") or "status"
    own = f"{sampled.event.get('channel', '')}:{sampled.event.get('user_id', '')}"
    user, kind = text_of(sampled.own, "user") or own, text_of(sampled.own, "kind")
    state = _STATES.get(operation, JobState.RUNNING)
    parameters, reason = sampled.own.get("parameters"), text_of(sampled.own, "reason")
    by = Actor.USER if state is JobState.PAUSED else None
    record = JobRecord(state, dict(parameters) if isinstance(parameters, Mapping) else {}, paused_by=by, reason=reason)
    job = StoredJob(JobId("", kind or "[kind]", user), record)
    match operation:
        case "sign_in":
            return {}
        case "sign_out":
            return {"signed_out": True}
        case "statistics":
            counts = {one: int(one is state) for one in JobState}
            return {"text": job_texts.statistics(counts), **{f"jobs_{one}": count for one, count in counts.items()}}
        case "list":
            return {"text": job_texts.listed([job], more=False), "jobs_listed": 1}
    text = job_texts.NOTHING_TODAY if operation == "log" else job_texts.status(job)
    about = {"job_user": user, "job_state": str(state), "job_paused_by": str(by or ""), "job_reason": reason}
    return {"text": text, **about}


_RESULTS: Mapping[str, Callable[[Sampled], Results]] = {
    "send": _send,
    "copy": _copy,
    "history": _history,
    "answer_inline": _answer_inline,
    "restrict": _restrict,
    **dict.fromkeys(("create_promo", "modify_promo"), _promo_results),
    "request": _request,
    "request_management": _request_management,
    "invite_link": _invite_link,
    "check_promo": _check_promo,
    "promo_management": _promo_management,
    "job": _job,
}
"""By type; every other action echoes what it is given."""
