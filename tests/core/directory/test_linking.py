"""Linking a contact by a mailed code (D-28) and unlinking it (D-29): each case has its own error code."""

import asyncio
import logging
from datetime import timedelta

import pytest

from core.directory import Directory
from core.directory.importing.journal import Journal
from core.directory.linking import ALPHABET, MOST_MAILS, MOST_MAILS_TO_PERSON, Link, Linking, as_typed, new_code
from core.errors import Conflict, Forbidden, NotFound, Refused, TooMany
from core.model.people import User, UserChange
from core.redis.store import Store
from couriers.email import LinkCodeMailer
from tests.core.directory.conftest import OTHER, TENANT
from tests.support.outbox import Outbox
from tests.support.servers import on_both_servers

ANNA = User(1, "Анна", "anna@example.org", "trainer", "en", {"sms": ["+79991112233"]})
PETR = User("u2", "Пётр", "petr@example.org")
HOUR_MS = 3_600_000
MINUTE_MS = 60_000


@pytest.fixture
async def people(directory: Directory) -> Directory:
    for user in (ANNA, PETR):
        await directory.users.create(TENANT, user)
    return directory


@pytest.fixture
def outbox() -> Outbox:
    return Outbox()


@pytest.fixture
def linking(store: Store, people: Directory, outbox: Outbox) -> Linking:
    return Linking(store, people, LinkCodeMailer(outbox))


async def code_of(attempt: object) -> str:
    """The code of the refusal of a call."""
    with pytest.raises(Refused) as refused:
        await attempt  # type: ignore[misc]
    return refused.value.code


def wrong(code: str) -> str:
    """A code that is certainly not this one."""
    return code[:-1] + next(letter for letter in ALPHABET if letter != code[-1])


@on_both_servers
async def test_the_code_from_the_mail_links_the_contact(linking: Linking, people: Directory, outbox: Outbox) -> None:
    request = await linking.request(TENANT, "telegram", "@Anna", "Anna@Example.org")
    (mail,) = outbox.sent
    assert mail.to == "anna@example.org"
    assert "24" in mail.text
    assert await people.users.by_contact(TENANT, "telegram", "@anna") is None
    assert await linking.confirm(TENANT, "telegram", "@ANNA", outbox.codes[0]) == Link(1, "telegram", "@anna")
    found = await people.users.by_contact(TENANT, "telegram", "@anna")
    assert found is not None
    assert (found.id, found.contacts) == (1, {"sms": ["+79991112233"], "telegram": ["@anna"]})
    assert (found.name, found.email, found.role, found.locale) == ("Анна", "anna@example.org", "trainer", "en")
    assert await code_of(linking.confirm_id(TENANT, request.id, outbox.codes[0])) == "CONTACT_LINKED"


async def test_the_mail_is_in_the_language_of_the_person(linking: Linking, outbox: Outbox) -> None:
    for address, email in (("100001", "anna@example.org"), ("100002", "petr@example.org")):
        await linking.request(TENANT, "telegram", address, email)
    english, russian = (mail.text for mail in outbox.sent)
    assert "your code" in english
    assert "код" in russian


async def test_an_unknown_email_address_has_its_own_answer(linking: Linking, outbox: Outbox) -> None:
    with pytest.raises(NotFound) as refused:
        await linking.request(TENANT, "telegram", "100001", "stranger@example.org")
    assert refused.value.code == "EMAIL_UNKNOWN"
    assert await code_of(linking.request(OTHER, "telegram", "100001", "anna@example.org")) == "EMAIL_UNKNOWN"
    assert outbox.sent == []


async def test_a_linked_contact_has_its_own_answer(linking: Linking, outbox: Outbox) -> None:
    with pytest.raises(Conflict) as refused:
        await linking.request(TENANT, "sms", "8 (999) 111-22-33", "petr@example.org")
    assert refused.value.code == "CONTACT_LINKED"
    assert outbox.sent == []


async def test_a_code_without_a_request_has_its_own_answer(linking: Linking) -> None:
    with pytest.raises(NotFound) as refused:
        await linking.confirm(TENANT, "telegram", "100001", new_code())
    assert refused.value.code == "CODE_MISSING"


async def test_a_wrong_code_has_its_own_answer_and_five_make_it_void(
    linking: Linking, people: Directory, outbox: Outbox
) -> None:
    await linking.request(TENANT, "telegram", "100001", "anna@example.org")
    (code,) = outbox.codes
    for left in (4, 3, 2, 1, 0):
        with pytest.raises(Forbidden, match=f"Left: {left} guess") as refused:
            await linking.confirm(TENANT, "telegram", "100001", wrong(code))
        assert refused.value.code == "CODE_WRONG"
    assert await code_of(linking.confirm(TENANT, "telegram", "100001", code)) == "TOO_MANY_GUESSES"
    assert await people.users.by_contact(TENANT, "telegram", "100001") is None
    await linking.request(TENANT, "telegram", "100001", "anna@example.org")
    await linking.confirm(TENANT, "telegram", "100001", outbox.codes[1])


async def test_a_code_expires_after_24_minutes(store: Store, linking: Linking, outbox: Outbox) -> None:
    await linking.request(TENANT, "telegram", "100001", "anna@example.org")
    store.clock_offset_ms = 24 * MINUTE_MS + 1
    assert await code_of(linking.confirm(TENANT, "telegram", "100001", outbox.codes[0])) == "CODE_EXPIRED"
    store.clock_offset_ms = 24 * MINUTE_MS - 2000
    await linking.confirm(TENANT, "telegram", "100001", outbox.codes[0])


async def test_the_lifetime_of_a_code_can_be_set(store: Store, people: Directory, outbox: Outbox) -> None:
    linking = Linking(store, people, LinkCodeMailer(outbox), lifetime=timedelta(minutes=2))
    await linking.request(TENANT, "telegram", "100001", "anna@example.org")
    assert "2 min" in outbox.sent[0].text
    store.clock_offset_ms = 2 * MINUTE_MS + 1
    assert await code_of(linking.confirm(TENANT, "telegram", "100001", outbox.codes[0])) == "CODE_EXPIRED"


async def test_of_twenty_confirmations_at_once_one_links(linking: Linking, people: Directory, outbox: Outbox) -> None:
    await linking.request(TENANT, "telegram", "100001", "anna@example.org")
    attempts = [linking.confirm(TENANT, "telegram", "100001", outbox.codes[0]) for _ in range(20)]
    results = await asyncio.gather(*attempts, return_exceptions=True)
    assert sum(isinstance(one, Link) for one in results) == 1
    assert {one.code for one in results if isinstance(one, Refused)} == {"CONTACT_LINKED"}
    assert (await people.users.find(TENANT, 1)).contacts["telegram"] == ["100001"]


async def test_twenty_guesses_at_once_are_still_five(linking: Linking, outbox: Outbox) -> None:
    await linking.request(TENANT, "telegram", "100001", "anna@example.org")
    attempts = [linking.confirm(TENANT, "telegram", "100001", wrong(outbox.codes[0])) for _ in range(20)]
    results = await asyncio.gather(*attempts, return_exceptions=True)
    codes = [one.code for one in results if isinstance(one, Refused)]
    assert (codes.count("CODE_WRONG"), codes.count("TOO_MANY_GUESSES")) == (5, 15)


async def test_a_code_is_used_up_although_the_contact_is_unlinked(
    linking: Linking, people: Directory, outbox: Outbox
) -> None:
    await linking.request(TENANT, "telegram", "100001", "anna@example.org")
    await linking.confirm(TENANT, "telegram", "100001", outbox.codes[0])
    await linking.unlink(TENANT, "telegram", "100001")
    assert await code_of(linking.confirm(TENANT, "telegram", "100001", outbox.codes[0])) == "CODE_MISSING"


async def test_a_new_code_replaces_the_one_before(linking: Linking, outbox: Outbox) -> None:
    for _ in range(2):
        await linking.request(TENANT, "telegram", "100001", "anna@example.org")
    old, new = outbox.codes
    assert await code_of(linking.confirm(TENANT, "telegram", "100001", old)) == "CODE_WRONG"
    await linking.confirm(TENANT, "telegram", "100001", new)


async def test_a_contact_that_another_person_got_meanwhile_is_not_linked(
    linking: Linking, people: Directory, outbox: Outbox
) -> None:
    await linking.request(TENANT, "telegram", "100001", "anna@example.org")
    await people.users.add_contact(TENANT, "u2", "telegram", "100001")
    assert await code_of(linking.confirm(TENANT, "telegram", "100001", outbox.codes[0])) == "CONTACT_LINKED"


async def test_a_change_of_the_person_meanwhile_is_kept(linking: Linking, people: Directory, outbox: Outbox) -> None:
    await linking.request(TENANT, "telegram", "100001", "anna@example.org")
    changes = [people.users.update(TENANT, 1, UserChange(name=f"name {n}")) for n in range(20)]
    await asyncio.gather(linking.confirm(TENANT, "telegram", "100001", outbox.codes[0]), *changes)
    anna = await people.users.find(TENANT, 1)
    assert anna.contacts["telegram"] == ["100001"]
    assert (anna.name or "").startswith("name")


async def test_mails_to_one_person_are_limited(store: Store, linking: Linking, outbox: Outbox) -> None:
    for n in range(MOST_MAILS_TO_PERSON):
        await linking.request(TENANT, "telegram", str(n + 1), "anna@example.org")
    with pytest.raises(TooMany) as refused:
        await linking.request(TENANT, "telegram", "@another", "anna@example.org")
    assert refused.value.code == "TOO_MANY_MAILS"
    assert 3500 < refused.value.retry_after.total_seconds() <= 3600
    await linking.request(TENANT, "telegram", "@another", "petr@example.org")
    assert len(outbox.sent) == MOST_MAILS_TO_PERSON + 1


async def test_strangers_do_not_use_up_the_codes_of_a_person(linking: Linking, outbox: Outbox) -> None:
    """They know the e-mail address, and ask from chats of their own until they are refused."""
    for stranger in ("200001", "200002", "200003"):
        for _ in range(MOST_MAILS):
            await linking.request(TENANT, "telegram", stranger, "anna@example.org")
        assert await code_of(linking.request(TENANT, "telegram", stranger, "anna@example.org")) == "TOO_MANY_MAILS"
    await linking.request(TENANT, "telegram", "100001", "anna@example.org")
    await linking.confirm(TENANT, "telegram", "100001", outbox.codes[-1])


async def test_requests_for_one_contact_are_limited_unknown_addresses_included(linking: Linking) -> None:
    for _ in range(MOST_MAILS):
        assert await code_of(linking.request(TENANT, "telegram", "1", "stranger@example.org")) == "EMAIL_UNKNOWN"
    assert await code_of(linking.request(TENANT, "telegram", "1", "anna@example.org")) == "TOO_MANY_MAILS"


async def test_twenty_requests_at_once_send_five_mails(linking: Linking, outbox: Outbox) -> None:
    attempts = [linking.request(TENANT, "telegram", "1", "anna@example.org") for _ in range(20)]
    await asyncio.gather(*attempts, return_exceptions=True)
    assert len(outbox.sent) == MOST_MAILS


async def test_what_could_not_be_mailed_does_not_count(linking: Linking, outbox: Outbox, store: Store) -> None:
    outbox.is_down = True
    for _ in range(MOST_MAILS_TO_PERSON + 1):
        assert await code_of(linking.request(TENANT, "telegram", "1", "anna@example.org")) == "MAIL_UNAVAILABLE"
    assert await code_of(linking.confirm(TENANT, "telegram", "1", new_code())) == "CODE_MISSING"
    outbox.is_down = False
    await linking.request(TENANT, "telegram", "1", "anna@example.org")
    await linking.confirm(TENANT, "telegram", "1", outbox.codes[0])


async def test_a_mail_that_may_have_arrived_can_be_answered(linking: Linking, outbox: Outbox) -> None:
    outbox.is_unclear = True
    await linking.request(TENANT, "telegram", "1", "anna@example.org")
    await linking.confirm(TENANT, "telegram", "1", outbox.codes[0])


async def test_without_a_mail_server_the_answer_names_the_setting(store: Store, people: Directory) -> None:
    with pytest.raises(Conflict, match="ADA_SMTP_URL") as refused:
        await Linking(store, people, None).request(TENANT, "telegram", "1", "anna@example.org")
    assert refused.value.code == "MAIL_NOT_SET_UP"


async def test_only_a_hash_of_the_code_is_stored_and_it_is_not_logged(
    store: Store, linking: Linking, outbox: Outbox, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    await linking.request(TENANT, "telegram", "100001", "anna@example.org")
    (code,) = outbox.codes
    for name in await store.redis.keys("*"):
        kind = await store.redis.type(name)
        content = str(await store.redis.hgetall(name) if kind == "hash" else name)
        assert code not in f"{name!r}{content}"
    await linking.confirm(TENANT, "telegram", "100001", code)
    assert code not in caplog.text


async def test_unlinking_removes_only_that_contact(linking: Linking, people: Directory) -> None:
    for address in ("100001", "100002"):
        await people.users.add_contact(TENANT, 1, "telegram", address)
    left = await linking.unlink(TENANT, "telegram", "100001")
    assert left.contacts == {"sms": ["+79991112233"], "telegram": ["100002"]}
    assert await people.users.by_contact(TENANT, "telegram", "100001") is None
    assert await people.users.by_contact(TENANT, "telegram", "100002") == left
    assert await code_of(linking.unlink(TENANT, "telegram", "100001")) == "CONTACT_NOT_LINKED"


async def test_during_an_import_a_right_code_stays_valid(store: Store, linking: Linking, outbox: Outbox) -> None:
    await linking.request(TENANT, "telegram", "100001", "anna@example.org")
    importing = Journal(store, TENANT)
    await importing.begin("users", 1)
    assert await code_of(linking.confirm(TENANT, "telegram", "100001", outbox.codes[0])) == "IMPORT_RUNNING"
    await importing.abort()
    await linking.confirm(TENANT, "telegram", "100001", outbox.codes[0])


def test_a_code_may_be_typed_in_small_letters_with_blanks_and_cyrillic_lookalikes() -> None:
    assert as_typed(" abc-2 3k") == "ABC23K"
    assert as_typed("АВСЕКМ") == "ABCEKM"


def test_codes_have_six_letters_or_digits_that_are_not_confused() -> None:
    codes = {new_code() for _ in range(1000)}
    assert len(codes) > 990
    assert set("".join(codes)) == set(ALPHABET)
    assert not set(ALPHABET) & set("01OIL")
    assert {len(code) for code in codes} == {6}
