"""The texts of others: an administrator of the tenant reads one only with a reason, which goes to the action log."""

from collections.abc import Sequence

from msgspec.structs import replace

from core.model.history import History, RecipientRecord
from delivery.http.action_log import reason_of, write_reading
from delivery.http.context import ApiRequest


def without_texts(history: History) -> History:
    """Return the history without its text, fields, content and question, and without the texts and answers of its
    recipients.
    """
    recipients = recipients_without_texts(history.recipients)
    hidden = replace(history, text="", texts={}, personal=(), content=None, question=None, answers=None)
    return replace(hidden, recipients=recipients)


def recipients_without_texts(recipients: Sequence[RecipientRecord]) -> Sequence[RecipientRecord]:
    return [replace(one, text=None, answer=None) for one in recipients]


async def is_hidden(request: ApiRequest, what: str) -> bool:
    """Return whether the text of the delivery is hidden from the caller; with a reason it is not, and the reading is
    written down as `what`. Raises StoreError if it cannot be.
    """
    if request.identity.acts_for(request.history_key.sender):
        return False
    if not reason_of(request.http):
        return True
    await write_reading(what, request)
    return False
