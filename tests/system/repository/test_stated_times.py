"""Each time that Ada states to a person is the one that holds, for example for how long a link is valid (39.38)."""

import json
import re
from datetime import timedelta

from core.audit.background import REPORT_KEPT
from core.deliveries.delivery_reports import KEPT_MS
from core.monitoring.figures import SampleStep
from core.orders.question_rules import LONGEST_WAIT, SHORTEST_WAIT
from core.sessions.links import DEVICE_LINK_LIFETIME
from core.threads.files import MOST_BYTES
from core.threads.limits import FILES_PERIOD, MOST_FILES
from jobs.endings import REPORTED_AFTER
from jobs.notices import LINK_LIFETIME
from tests.support.paths import ROOT

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

TIME = re.compile(
    r"\b(an?|one|two|ten|half an?|seven|\d+) (minute|hour|day|week|month)s?\b"
    r"|\bминуту|\bполминуты|\bчаса|\bсутки|\bдня\b|\bдней\b|\bнеделю|\d+ минут"
)
STATED = {
    "device_link": DEVICE_LINK_LIFETIME == HOUR,
    "preferences_devices_sent": DEVICE_LINK_LIFETIME == HOUR,
    "job_sign_in_address": LINK_LIFETIME == DAY,
    "job_keeps_failing": REPORTED_AFTER == DAY,
    "reply_lost_files": (MOST_FILES, FILES_PERIOD, MOST_BYTES) == (10, DAY, 20 * 2**20),
    "audit.none": REPORT_KEPT == DAY,
    "problem.TOO_SOON_TO_ASK_AGAIN": (SHORTEST_WAIT, LONGEST_WAIT) == (MINUTE, 30 * DAY),
    "message.exchange_hint": KEPT_MS * timedelta(milliseconds=1) == 7 * DAY,
    "message.exchange_none": KEPT_MS * timedelta(milliseconds=1) == 7 * DAY,
    "overview.no_figures": (SampleStep.FINE, SampleStep.COARSE) == (10, 600),
}
"""Text → whether what it states holds. Figures need two samples, so the first are there after twice a step."""

ADVICE = {
    *("answer_page_outage", "answer_page_rate_exceeded", "preferences_outage", "preferences_rate_exceeded"),
    *("account.key_days", "problem.RATE_EXCEEDED", "problem.TIME_MALFORMED", "runs.since", "sync_fault.leaving"),
    *("preferences_daily", "overview.messages", "overview.tasks", "problem.IMPORT_RUNNING"),
    *("problem.SYNC_HALVED", "problem.WINDOW_EMPTY", "job_model_budget"),
}
"""When to try again, rates, names of fields: nothing for how long Ada keeps anything."""


def texts() -> dict[str, str]:
    """Return the texts for people, by bots, mails and pages, in both languages."""
    lists = [
        json.loads((ROOT / "core" / name).read_text()) for name in ("texts.json", "problems.json", "sentences.json")
    ]
    found = {name: " ".join(both) for one in lists for name, both in one.items()}
    for file in (ROOT / "delivery" / "console" / "static" / "words").rglob("*.json"):
        for name, text in json.loads(file.read_text()).items():
            found[name] = f"{found.get(name, '')} {text}"
    return found


def test_each_stated_time_is_known_here_and_holds() -> None:
    stating = {name for name, text in texts().items() if TIME.search(text)}
    assert stating - ADVICE == STATED.keys()
    assert [name for name, holds in STATED.items() if not holds] == []
