"""Pages of three in place of hundreds: what is read or written in pages meets their borders in every test.

A folder of tests whose conftest imports `small_pages` works with them. A test that counts calls sets its own page.
"""

from importlib import import_module

import pytest

_PAGES = {
    "core.deliveries.cancel._PAGE": 3,
    "core.deliveries.histories.listing._AT_ONCE": 3,
    "core.deliveries.histories.listing._PAGE": 3,
    "core.deliveries.histories.reader._FIELDS_AT_ONCE": 3,
    "core.deliveries.histories.recipient_search._AT_ONCE": 3,
    "core.deliveries.histories.recipient_search._PAGE": 3,
    "core.deliveries.of_person._AT_ONCE": 3,
    "core.deliveries.of_person._PAGES": 2,
    "core.deliveries.delivery_reports._PAGE": 3,
    "core.directory.collections.PAGE": 3,
    "core.directory.directory._AT_ONCE": 3,
    "core.directory.exporting.PAGE": 3,
    "core.directory.importing.reader.PAGE": 1,
    "core.directory.records.PAGE": 3,
    "core.directory.users.PAGE": 3,
    "couriers.sending.outcome_writer._PAGE": 3,
    "core.queue.inspector._PAGE": 3,
}
"""Constant → its value in tests."""


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets the pages of the product for one test."""
    for name, size in _PAGES.items():
        module, _, constant = name.rpartition(".")
        monkeypatch.setattr(import_module(module), constant, size)
