"""The outcomes of a delivery as a table for people (W-26): one row for each recipient, in the words and times of the
console. Programs take the other form, with a row for each channel.
"""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, tzinfo

from core.deliveries.histories.recipient_search import RecipientFilter, why_not_reached
from core.model.history import History, OutcomeRecord, RecipientRecord
from core.model.states import Status
from delivery.api.deliveries.answers import file_name_of
from delivery.api.deliveries.chat_members import with_names
from delivery.http.context import ApiRequest
from delivery.http.responses.console_words import console_word, console_words, local_time
from delivery.http.responses.csv import Rows

_PERSON = ("people.id", "message.person", "page.groups", "message.why")


class OutcomeTable:
    """The table of one delivery."""

    def __init__(self, history: History, language: str, zone: tzinfo) -> None:
        self._language, self._zone = language, zone
        self._channels = list(history.channels)
        self._is_personal = bool(history.personal or history.texts)
        self.name = f"{file_name_of(history)} {self._time(history.deliver_at)[:10]}.csv"

    def _time(self, at: datetime) -> str:
        return local_time(at, self._zone, self._language)

    def header(self) -> Sequence[str]:
        words = console_words(self._language)
        channels = [console_word("channel", one, self._language) for one in self._channels]
        own = [words["message.own_text"]] if self._is_personal else []
        return [*(str(words[key]) for key in _PERSON), *channels, *map(str, own)]

    def row(self, record: RecipientRecord) -> Sequence[str]:
        why = why_not_reached(record)
        known = (
            console_word("why", why, self._language) if why else str(console_words(self._language)["message.reached"])
        )
        cells = [self._cell(record.outcomes[one]) for one in self._channels]
        own = [record.text or ""] if self._is_personal else []
        return [str(record.id), record.name or "", ", ".join(record.origin), known, *cells, *own]

    def _cell(self, outcome: OutcomeRecord) -> str:
        """Return an outcome with reason, provider's words and time; nothing where the person has no contact."""
        if outcome.status is Status.NO_CONTACT:
            return ""
        said = console_word("status", outcome.status, self._language)
        reason = f": {console_word('reason', outcome.reason, self._language)}" if outcome.reason else ""
        detail = f" ({outcome.detail})" if outcome.detail else ""
        if outcome.not_before:
            waits = str(console_words(self._language)["message.not_before"])
            return f"{said}: {waits.replace('{when}', self._time(outcome.not_before))}"
        return f"{said}{reason}{detail}{f', {self._time(outcome.at)}' if outcome.at else ''}"


async def table_rows(request: ApiRequest, table: OutcomeTable, wanted: RecipientFilter) -> AsyncIterator[Rows]:
    """Yield pages of rows, the header with the first."""
    rows = [table.header()]
    async for page in request.services.core.deliveries.recipients.all(request.history_key, request.tenant, wanted):
        yield [*rows, *(table.row(record) for record in await with_names(request, page.recipients))]
        rows = []
