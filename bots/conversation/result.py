"""The result of a delivery as one text, for a sender whose channel cannot change a message (D-17). Pure.

The result is that of the end of the delivery. If the end has not come an hour after the release, for example because a
courier does not run, the result is that of this moment, so that the sender learns who was reached so far.
"""

from datetime import UTC, datetime, timedelta

from bots.catalogue import text
from bots.replies import Reply
from core.model.history import History
from core.orders.following import StatusTask
from scenarios.sending.phrases import verdict_name

PATIENCE = timedelta(hours=1)
FIRST_LOOK = timedelta(seconds=2)
"""After the sender has written: first comes the reply that the delivery is accepted."""


def result(history: History, followed: StatusTask, now: datetime | None = None) -> Reply:
    """Return the result; an empty reply as long as there is none."""
    if history.finished_at is None and not _is_overdue(history, now or datetime.now(UTC)):
        return Reply()
    counts = history.counts
    people, reached = counts["recipients"], counts["reached"]
    shown = text(
        f"result_{verdict_name(history)}", followed.locale, name=followed.title, people=people, reached=reached
    )
    return Reply(shown)


def _is_overdue(history: History, now: datetime) -> bool:
    return history.released_at is not None and now > history.released_at + PATIENCE
