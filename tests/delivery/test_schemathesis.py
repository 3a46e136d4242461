"""Schemathesis on a real server: it sends valid and invalid requests of every operation in the OpenAPI document.

A new route is covered without a change here.
"""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.delivery.conftest import Api
from tests.support.paths import ROOT

HERE = Path(__file__).parent
CASES, CASES_OF_LONG_FORM = 1, 300
"""Random requests of each operation and phase; `--examples` sets another number."""
PHASES, PHASES_OF_LONG_FORM = "fuzzing,stateful", "coverage,fuzzing,stateful"
"""coverage: every limit of every field, thousands of requests. stateful: sequences of requests along the links."""


@pytest.mark.timeout(3600)
async def test_every_operation_does_what_the_document_says(
    api: Api, long_form: bool, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """No internal error; responses match their schemas; a request is refused if and only if the document says so; the
    Allow header lists the documented methods.
    """
    seed = pytestconfig.getoption("--hypothesis-seed") if long_form else 1  # every short run tries the same requests
    cases = pytestconfig.getoption("--examples") or (CASES_OF_LONG_FORM if long_form else CASES)
    arguments = [
        *("--config-file", str(HERE / "schemathesis.toml"), "run", f"{api.url}/openapi.json"),
        *("--max-examples", str(cases)),
        *("--phases", PHASES_OF_LONG_FORM if long_form else PHASES),
        *(("--seed", str(seed)) if seed is not None else ()),
        *("--request-timeout", "15", "--continue-on-failure", "--suppress-health-check", "all"),
    ]
    _, scim = await api.services.api_keys.create("entra", ["scim"])
    run = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "schemathesis.cli", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=tmp_path,
        env={
            **os.environ,
            "SCHEMATHESIS_HOOKS": "tests.delivery.schemathesis_checks",
            "PYTHONPATH": str(ROOT),
            "ADA_TEST_KEY": api.secret,
            "ADA_TEST_SCIM_KEY": scim,
        },
    )
    try:
        output, _ = await run.communicate()
    finally:
        if run.returncode is None:
            run.kill()
    assert run.returncode == 0, output.decode()
