"""Jobs as text for people."""

from datetime import tzinfo

from cli.client.local_times import shown_moment
from core.jobs import JobState, StoredJob
from core.jobs.steps import ResetPlan, StepView, UnitView
from core.jobs.views import JobView, LogLine, view_of
from core.model.json_form import compact_json
from core.model.text.characters import counted


def format_job(job: StoredJob, zone: tzinfo) -> str:
    """Return all facts, one per line."""
    view = view_of(job)
    facts = {
        "job": view.id,
        "state": _state(view),
        "iterations": view.iterations,
        "created": shown_moment(view.created_at, zone),
        "last run": shown_moment(view.last_run, zone),
        "next run": shown_moment(view.next_run or view.resumes_at, zone),
        "waits for": view.waits_for,
        "time zone": view.timezone,
        "schedule": compact_json(view.schedule) if view.schedule else "",
        "parameters": compact_json(view.parameters) if view.parameters else "",
        "own state": compact_json(view.own_state) if view.own_state is not None else "",
        "result": _result(view),
        "parent": view.parent,
        "children": ", ".join(view.children),
    }
    return "\n".join(f"{name + ':':<12} {value}" for name, value in facts.items() if value not in ("", None))


def format_job_line(job: StoredJob, zone: tzinfo) -> str:
    view = view_of(job)
    following = shown_moment(view.next_run or view.resumes_at, zone) or "-"
    runs = counted(view.iterations, "run")
    return f"{view.id:<30} {_by(view):<20} {runs:>11}, next {following:<25}  {view.reason or _result(view)}".rstrip()


def format_log_line(line: LogLine, zone: tzinfo) -> str:
    return f"{shown_moment(line.at, zone)}  {line.text}"


def format_unit(unit: UnitView, zone: tzinfo) -> str:
    facts = [unit.reason, f"result {compact_json(unit.result)}" if unit.result is not None else None]
    details = "; ".join(fact for fact in facts if fact)
    at = shown_moment(unit.at, zone) or "-"
    return f"{unit.id:<30} {unit.status:<8} {at:<25}  iteration {unit.iteration}  {details}".rstrip()


def format_step(step: StepView, zone: tzinfo) -> str:
    facts = [step.reason, f"result {compact_json(step.result)}" if step.result is not None else None]
    details = "; ".join(fact for fact in facts if fact)
    return f"{step.id:<30} {step.status:<9} {shown_moment(step.at, zone):<25}  {details}".rstrip()


def format_plan(plan: ResetPlan, *, is_dry: bool) -> str:
    """Return what a reset drops and what stays, one per line."""
    dropped, kept = ("would be dropped", "would stay") if is_dry else ("dropped", "stays")
    lines = [f"{dropped}: {step.id}" for step in plan.dropped] + [
        f"{kept}: {step.id} ({step.status})" for step in plan.kept
    ]
    return "\n".join(lines)


def _state(view: JobView) -> str:
    return _by(view) + (f": {view.reason}" if view.reason else "")


def _result(view: JobView) -> str:
    return compact_json(view.result) if view.result is not None else ""


def _by(view: JobView) -> str:
    if view.state is JobState.PAUSED:
        return f"paused by {view.paused_by}"
    return f"{view.state}, paused by {view.paused_by}" if view.paused_by else str(view.state)
