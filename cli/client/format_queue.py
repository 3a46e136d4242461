"""Formats queue statistics and tasks as text for people. Pure."""

from collections.abc import Iterator

import msgspec

from core.queue import QueueStats, TaskView, TubeStats

_STATES = ("waiting", "ready", "locked", "taken", "buried")
_ENDS = ("done", "failed", "cancelled", "expired")
_LABELS = ("tube", "tenant", "lane", "kind", "user")
_OVERDUE_MS = 5000
"""Workers promote due tasks within 3 s. A longer delay means that no worker runs."""


def format_stats(stats: QueueStats) -> str:
    """Return a table with one line per tube."""
    header = f"{'tube':<20}" + "".join(f"{name:>10}" for name in (*_STATES, *_ENDS)) + f"{'oldest':>10}{'lag':>9}"
    lines = [header, *(_tube_line(name, tube) for name, tube in stats.tubes.items())]
    if stats.overdue_ms > _OVERDUE_MS:
        lines.append(f"no worker has taken due tasks for {stats.overdue_ms / 1000:.1f} s")
    return "\n".join(lines)


def _tube_line(name: str, tube: TubeStats) -> str:
    counts = [getattr(tube.states, state) for state in _STATES] + [getattr(tube, end) for end in _ENDS]
    numbers = "".join(f"{count:>10}" for count in counts)
    return f"{name:<20}{numbers}{tube.oldest_ms / 1000:>9.1f}s{tube.lag_ms:>7.1f}ms"


def format_task_line(task: TaskView) -> str:
    behind = f" behind {task.waits_for}" if task.waits_for else ""
    labels = " ".join(f"{name}={getattr(task, name)}" for name in _LABELS if getattr(task, name) is not None)
    return f"{task.id}  {task.state}{behind}  {labels}"


def format_task(task: TaskView) -> str:
    """Return all fields of a task, one per line."""
    return "\n".join(_field_lines(task))


def _field_lines(task: TaskView) -> Iterator[str]:
    for name, value in msgspec.to_builtins(task).items():
        yield f"{name:<11} {', '.join(value) if isinstance(value, list) else value}"
