"""The kinds of jobs whose code this process has: entry points `ada.jobs`, and what ADA_JOBS names."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from inspect import isabstract, iscoroutinefunction
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any

from core.errors import SetupError
from core.jobs import Schedule
from core.jobs.record import KIND
from core.jobs.signals import Schema, schemas_of
from core.queue.checks import check_type
from jobs.job import Job
from jobs.limits import check_limits
from jobs.queries import queries_of

GROUP = "ada.jobs"


class Registry:
    """Name → kind of job."""

    def __init__(self, kinds: Iterable[type[Job]]) -> None:
        """Register the kinds. Raises SetupError for a class that is not complete, and for two of one name."""
        self.kinds: dict[str, type[Job]] = {}
        for kind in kinds:
            _check(kind)
            other = self.kinds.setdefault(kind.name, kind)
            if other is not kind:
                raise SetupError(f"two jobs have the name {kind.name!r}: {_place(other)} and {_place(kind)}")

    @property
    def schedules(self) -> Mapping[str, Schedule]:
        return {name: kind.schedule for name, kind in self.kinds.items()}

    @property
    def signals(self) -> Mapping[str, Mapping[str, Schema]]:
        """Return the types of the signals of each kind."""
        return {name: schemas_of(kind.signals) for name, kind in self.kinds.items()}

    @property
    def queries(self) -> Sequence[tuple[str, str]]:
        """Return (kind, name) of each query."""
        return [(name, one) for name, kind in self.kinds.items() for one in queries_of(kind)]


def installed(modules: Iterable[str] = ()) -> Registry:
    """Return the kinds of all installed packages, and those defined in these modules or files. Raises SetupError."""
    found = [_loaded(point.value, point.load) for point in entry_points(group=GROUP)]
    return Registry([*found, *(kind for module in modules for kind in _defined_in(module))])


def _check(kind: type[Job]) -> None:
    """Check a class of jobs. Raises SetupError."""
    name = getattr(kind, "name", None)
    if not (isinstance(name, str) and KIND.fullmatch(name)):
        raise SetupError(f"the job {_place(kind)} needs a `name` of the form {KIND.pattern}; it has {name!r}")
    if not isinstance(getattr(kind, "schedule", None), Schedule):
        raise SetupError(f"the job {_place(kind)} needs a `schedule = Schedule(…)`")
    if kind.concurrency is not None and kind.concurrency < 1:
        raise SetupError(f"`concurrency` of the job {_place(kind)} is a number from 1; it is {kind.concurrency!r}")
    try:
        check_type("job", "max_runtime", kind.max_runtime, timedelta)
        check_limits(kind.limits)
    except TypeError as fault:
        raise SetupError(f"the job {_place(kind)}: {fault}") from None
    try:
        schemas_of(kind.signals)
    except TypeError as fault:
        raise SetupError(f"`signals` of the job {_place(kind)} have a type that JSON does not have: {fault}") from None
    if not iscoroutinefunction(kind.run):
        raise SetupError(f"`run` of the job {_place(kind)} needs to be `async def`")


def _place(kind: type[Job]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _loaded(name: str, load: Callable[[], Any]) -> type[Job]:
    try:
        kind = load()
    except Exception as fault:  # noqa: BLE001 - a foreign package may raise anything while it is imported
        raise SetupError(f"the job {name} cannot be imported: {type(fault).__name__}: {fault}") from None
    if not (isinstance(kind, type) and issubclass(kind, Job)):
        raise SetupError(f"{name} is not a subclass of jobs.Job")
    return kind


def _defined_in(name: str) -> list[type[Job]]:
    """Return the kinds defined in a module, or in a file if the name ends with `.py`."""
    try:
        module = _module_of(Path(name)) if name.endswith(".py") else import_module(name)
    except Exception as fault:  # noqa: BLE001 - as above
        lines = [frame.lineno for frame in extract_tb(fault.__traceback__) if frame.filename == name]
        line = f"line {lines[-1]}: " if lines else ""
        raise SetupError(
            f"the module {name} of ADA_JOBS cannot be imported: {line}{type(fault).__name__}: {fault}"
        ) from None
    members = [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, Job)]
    kinds = [one for one in members if not isabstract(one) and one.__module__ == module.__name__]
    if not kinds:
        raise SetupError(f"the module {name} of ADA_JOBS defines no subclass of jobs.Job with a `run`")
    return kinds


def _module_of(file: Path) -> ModuleType:
    name = f"ada_jobs_{file.stem}"
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
