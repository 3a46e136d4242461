"""What is in the queue, as a person reads it. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

Facts = Mapping[str, Any]

_STATES = ("waiting", "ready", "locked", "taken", "buried")
_ENDS = ("done", "failed", "cancelled", "expired")


def whole(stats: Facts) -> str:
    """All tubes, a line each."""
    head = f"{'tube':<20}" + "".join(f"{name:>10}" for name in (*_STATES, *_ENDS)) + f"{'oldest':>10}{'lag':>9}"
    late = stats["overdue_ms"]
    warning = [f"nobody has looked for {late / 1000:.1f} s although something is due"] if late > 5000 else []
    return "\n".join([head, *(tube(name, told) for name, told in stats["tubes"].items()), *warning])


def tube(name: str, told: Facts) -> str:
    counts = [told["states"][state] for state in _STATES] + [told.get(end, 0) for end in _ENDS]
    numbers = "".join(f"{count:>10}" for count in counts)
    return f"{name:<20}{numbers}{told['oldest_ms'] / 1000:>9.1f}s{told['lag_ms']:>7.1f}ms"


def line(task: Facts) -> str:
    waits = f" behind {task['waits_for']}" if "waits_for" in task else ""
    marks = " ".join(f"{name}={task[name]}" for name in ("tube", "tenant", "lane", "kind", "user") if name in task)
    return f"{task['id']}  {task['state']}{waits}  {marks}"


def facts(task: Facts) -> str:
    return "\n".join(_facts(task))


def _facts(task: Facts) -> Iterator[str]:
    for name, value in task.items():
        yield f"{name:<11} {', '.join(value) if isinstance(value, list) else value}"
