"""A plugin of pytest that notes which scripts each test ran, and how long it took.

pytest -p tests.proof.recorder --scripts-to FILE
"""

import json
import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from core.store import Store

_ran: dict[str, set[str]] = defaultdict(set)
_took: dict[str, float] = defaultdict(float)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--scripts-to", type=Path, required=True)


def _note(script: str) -> None:
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    _ran[test].add(script)


def pytest_configure() -> None:
    run, run_each = Store.run, Store.run_each

    async def noting_run(self: Store, name: str, shard: int, *arguments: Any) -> Any:
        _note(name)
        return await run(self, name, shard, *arguments)

    async def noting_run_each(self: Store, name: str, calls: Sequence[Any]) -> Any:
        _note(name)
        return await run_each(self, name, calls)

    Store.run = noting_run  # type: ignore[method-assign]
    Store.run_each = noting_run_each  # type: ignore[method-assign]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _took[report.nodeid] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    found = {test: {"scripts": sorted(names), "seconds": round(_took[test], 3)} for test, names in _ran.items() if test}
    Path(session.config.getoption("--scripts-to")).write_text(json.dumps(found))
