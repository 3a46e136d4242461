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
"""Random requests of each operation and phase."""
PHASES, PHASES_OF_LONG_FORM = "fuzzing,stateful", "coverage,fuzzing,stateful"
"""coverage: every limit of every field, thousands of requests. stateful: sequences of requests along the links."""


@pytest.mark.timeout(3600)
async def test_every_operation_does_what_the_document_says(api: Api, long_form: bool, tmp_path: Path) -> None:
    """No internal error; responses match their schemas; a request is refused if and only if the document says so; the
    Allow header lists the documented methods.
    """
    arguments = [
        *("--config-file", str(HERE / "schemathesis.toml"), "run", f"{api.url}/openapi.json"),
        *("--header", f"Authorization:Bearer {api.secret}"),
        *("--max-examples", str(CASES_OF_LONG_FORM if long_form else CASES)),
        *("--phases", PHASES_OF_LONG_FORM if long_form else PHASES),
        *(() if long_form else ("--seed", "1")),  # every run of the short form tries the same requests
        *("--request-timeout", "15", "--continue-on-failure", "--suppress-health-check", "all"),
    ]
    run = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "schemathesis.cli", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=tmp_path,
        env={
            **os.environ,
            "SCHEMATHESIS_HOOKS": "tests.delivery.schemathesis_checks",
            "PYTHONPATH": str(ROOT),
        },
    )
    try:
        output, _ = await run.communicate()
    finally:
        if run.returncode is None:
            run.kill()
    assert run.returncode == 0, output.decode()
