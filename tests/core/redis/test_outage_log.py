"""What is logged of an outage of the server: nothing of a short one, one line and its end of a long one."""

import logging

import pytest

from core.redis.connection import OutageLog

LOG = logging.getLogger("tests.outage")


@pytest.mark.parametrize(
    ("patience", "lines"),
    [(60.0, []), (0.0, ["Redis does not answer: refused", "works again, after: Redis does not answer"])],
    ids=["short", "long"],
)
def test_an_outage_is_logged_once_and_only_if_it_lasts(
    caplog: pytest.LogCaptureFixture, patience: float, lines: list[str]
) -> None:
    caplog.set_level(logging.INFO)
    outage = OutageLog(LOG, "Redis does not answer", patience)
    for _ in range(3):
        outage.failed(ConnectionError("refused"))
    outage.ended()
    outage.ended()
    assert [record.message for record in caplog.records] == lines
