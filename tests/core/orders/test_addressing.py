"""Addressees become recipients: people of the directory, groups, supergroups, each person once."""

import pytest

from core.errors import Refused
from core.model.delivery import Recipient, Sender
from core.model.people import User, UserChange
from core.model.states import Reason, Status
from core.orders import Addressee, AnyAddressee, Caller, Order, Sending
from tests.core.orders.conftest import ADMIN, LATER, OFFICE, SEND_ONLY, TRAINER, Office, order
from tests.support.stack import TENANT, FakeCourier, person


async def refusal(
    office: Office, *addressees: AnyAddressee, caller: Caller = ADMIN, sender: Sender = OFFICE
) -> Refused:
    """The refusal of an order; asserts that it leaves no trace."""
    before = sorted(office.stack.server.all_keys())
    with pytest.raises(Refused) as refused:
        await office.send(*addressees, caller=caller, sender=sender, repeat="key")
    assert sorted(office.stack.server.all_keys()) == before
    return refused.value


async def test_groups_become_their_members_each_once_with_the_groups_as_origin(office: Office) -> None:
    await office.people(5)
    await office.group("ИВТ-21", 1, 2, 3)
    await office.group("ИВТ-22", 3, 4)
    await office.group("everybody", 1, 5, virtual=True)
    await office.supergroup("1 курс", "ИВТ-21", "ИВТ-22", "everybody")
    courier = FakeCourier()
    await office.stack.courier(courier)
    accepted = await office.send(
        Addressee(group="ИВТ-21"), Addressee(supergroup="1 курс"), Addressee(2), Addressee("5")
    )
    assert accepted.recipients == 5
    history = await office.stack.finished(accepted.key)
    origins = {one.id: set(one.origin) for one in history.recipients}
    assert origins == {2: {"ИВТ-21"}, "5": set(), 1: {"ИВТ-21"}, 3: {"ИВТ-21", "ИВТ-22"}, 4: {"ИВТ-22"}}
    assert [one.name for one in history.recipients if one.id == 4] == ["Person 4"]
    assert sorted(courier.addresses) == ["d1", "d2", "d3", "d4", "d5"]


async def test_a_person_with_inline_contacts_and_in_a_group_is_one_recipient_with_all_contacts(office: Office) -> None:
    await office.people(2)
    await office.group("ИВТ-21", 1, 2)
    courier = FakeCourier()
    await office.stack.courier(courier)
    accepted = await office.send(Recipient("1", "Петя", {"echo": ["i1", "d1"]}), Addressee(group="ИВТ-21"))
    history = await office.stack.finished(accepted.key)
    assert [(one.id, one.name, one.origin) for one in history.recipients] == [
        ("1", "Петя", ["ИВТ-21"]),
        (2, "Person 2", ["ИВТ-21"]),
    ]
    assert sorted(courier.addresses) == ["d1", "d2", "i1"]


async def test_inline_contacts_need_no_directory_and_an_empty_list_of_them_is_one_too(office: Office) -> None:
    accepted = await office.send(person(1), Recipient(2), deliver_at=LATER)
    assert accepted.recipients == 2


async def test_an_address_alone_beside_somebody_named_with_it_is_one_message(office: Office) -> None:
    """Also if the directory has a third person with this address."""
    await office.directory.users.create(TENANT, User(1, "Анна", contacts={"echo": ["d1"]}))
    named, alone = Addressee(7, contacts={"echo": "d1"}), Addressee("echo:d1", contacts={"echo": "d1"})
    for addressees in ([named, alone], [alone, named], [alone, alone], [Addressee(1), alone]):
        assert (await office.send(*addressees, deliver_at=LATER)).recipients == 1


async def test_an_address_alone_is_the_person_that_has_it_and_an_id_with_contacts_stays_as_it_is(
    office: Office,
) -> None:
    """What was sent to an address of a person is in its list and its export, and goes with it."""
    await office.directory.users.create(TENANT, User(1, "Анна", contacts={"echo": ["d1", "d2"]}, fields={"курс": "2"}))
    courier = FakeCourier()
    await office.stack.courier(courier)
    text = "{{имя}}, {{курс}}, {{оценка|–}}"
    accepted = await office.send(
        Addressee("echo:d2", contacts={"echo": "d2"}, values={"оценка": 5}),
        Addressee("echo:d9", contacts={"echo": "d9"}, values={"имя": "Пётр", "курс": "1"}),
        Addressee(7, "Отец", contacts={"echo": "d1"}, values={"имя": "Отец", "курс": "–"}),
        text=text,
    )
    history = await office.stack.finished(accepted.key)
    assert [(one.id, one.name) for one in history.recipients] == [(1, "Анна"), ("echo:d9", None), (7, "Отец")]
    assert {(one.address, one.text) for one in courier.attempted} == {
        ("d2", "Анна, 2, 5"),
        ("d9", "Пётр, 1, –"),
        ("d1", "Отец, –, –"),
    }
    found, _ = await office.stack.deliveries.of_person.page(TENANT, "1", None, 10, lambda _: True)
    assert [one.history.key for one in found] == [accepted.key]


@pytest.mark.parametrize(
    ("code", "path", "addressees"),
    [
        ("USER_NOT_FOUND", "recipients.1.id", [person(1), Addressee(77)]),
        ("GROUP_NOT_FOUND", "recipients.1.group", [Addressee(group="full"), Addressee(group="none")]),
        (
            "SUPERGROUP_NOT_FOUND",
            "recipients.2.supergroup",
            [person(1), Addressee(group="full"), Addressee(supergroup="full")],
        ),
        ("NOBODY_ADDRESSED", "recipients", [Addressee(group="empty"), Addressee(supergroup="hollow")]),
    ],
)
async def test_each_refusal_has_its_code_and_leaves_no_trace(
    office: Office, code: str, path: str, addressees: list[Addressee]
) -> None:
    await office.people(1)
    await office.group("full", 1)
    await office.group("empty")
    await office.supergroup("hollow", "empty")
    refused = await refusal(office, *addressees)
    assert (refused.code, refused.path) == (code, path)


async def test_more_members_than_a_delivery_may_have_are_refused(office: Office) -> None:
    await office.people(3)
    await office.group("ИВТ-21", 1, 2, 3)
    office.sending = Sending(office.stack.store, office.stack.deliveries, office.directory, max_recipients=2)
    assert (await refusal(office, Addressee(group="ИВТ-21"))).code == "TOO_MANY_RECIPIENTS"


class TestOwnership:
    @pytest.fixture(autouse=True)
    async def groups(self, office: Office) -> None:
        await office.people(2)
        await office.directory.users.create(TENANT, User(42, role="trainer"))
        await office.directory.users.create(TENANT, User(43, role="admin"))
        await office.group("ИВТ-21", 1)
        await office.group("ИВТ-22", 2)
        await office.supergroup("1 курс", "ИВТ-21", "ИВТ-22")
        await office.directory.ownerships.own(TENANT, 42, "group", "ИВТ-21")

    @pytest.mark.parametrize("foreign", [Addressee(group="ИВТ-22"), Addressee(supergroup="1 курс")])
    @pytest.mark.parametrize("role", ["trainer", "admin", None])
    async def test_a_sender_writes_only_to_groups_that_it_owns(
        self, office: Office, foreign: Addressee, role: str | None
    ) -> None:
        """The role is the directory's, whatever the request says."""
        refused = await refusal(
            office, Addressee(group="ИВТ-21"), foreign, caller=SEND_ONLY, sender=Sender(42, role=role)
        )
        kind = "group" if foreign.group else "supergroup"
        assert (refused.code, refused.path) == ("NOT_OWNER", f"recipients.1.{kind}")
        allowed = await office.send(Addressee(group="ИВТ-21"), caller=SEND_ONLY, sender=Sender(42), deliver_at=LATER)
        assert allowed.recipients == 1

    async def test_a_group_that_does_not_exist_is_unknown_and_not_foreign(self, office: Office) -> None:
        assert (await refusal(office, Addressee(group="none"), sender=TRAINER)).code == "GROUP_NOT_FOUND"
        assert (await refusal(office, Addressee(supergroup="none"), sender=TRAINER)).code == "SUPERGROUP_NOT_FOUND"

    @pytest.mark.parametrize(
        ("caller", "sender"),
        [
            (SEND_ONLY, Sender(43)),
            (SEND_ONLY, Sender("schedule")),
            (ADMIN, Sender(42)),
            (ADMIN, Sender(42, role="admin")),
        ],
        ids=["role admin", "no role", "admin key without a role", "admin key with the role admin"],
    )
    async def test_role_admin_and_senders_without_a_role_write_to_every_group(
        self, office: Office, caller: Caller, sender: Sender
    ) -> None:
        await office.send(Addressee(supergroup="1 курс"), caller=caller, sender=sender, deliver_at=LATER)

    async def test_an_administrators_key_with_a_role_is_held_to_ownership(self, office: Office) -> None:
        assert (await refusal(office, Addressee(group="ИВТ-22"), sender=TRAINER)).code == "NOT_OWNER"


class TestOptOut:
    async def test_a_channel_that_a_person_has_left_is_not_used_and_the_history_shows_it(self, office: Office) -> None:
        await office.people(3)
        await office.directory.users.update(TENANT, 1, UserChange(opt_out=["echo"]))
        await office.group("ИВТ-21", 1, 2, 3)
        courier = FakeCourier()
        await office.stack.courier(courier)
        accepted = await office.send(Recipient(1, contacts={"echo": ["i1"]}), Recipient(9), Addressee(group="ИВТ-21"))
        history = await office.stack.finished(accepted.key)
        assert sorted(courier.addresses) == ["d2", "d3"]
        outcomes = {one.id: one.outcomes["echo"] for one in history.recipients}
        assert (outcomes[1].status, outcomes[1].reason) == (Status.SKIPPED, Reason.OPTED_OUT)
        assert history.channels["echo"].counts == {Status.SENT: 2, Status.SKIPPED: 1, Status.NO_CONTACT: 1}
        assert (history.counts["skipped"], history.verdict) == (1, "all_reached")

    async def test_a_person_that_left_every_channel_is_not_reachable(self, office: Office) -> None:
        await office.people(1, opt_out=["echo"])
        history = await office.stack.history((await office.send(Addressee(1))).key)
        assert (history.state, history.verdict, history.counts["skipped"]) == ("finished", "nobody_to_reach", 1)


async def test_a_supergroup_of_two_thousand_is_one_enqueue(office: Office) -> None:
    users = [User(number, contacts={"echo": [f"d{number}"]}) for number in range(2000)]
    for user in users:
        await office.directory.users.create(TENANT, user)
    await office.group("a", *range(1200))
    await office.group("b", *range(800, 2000))
    await office.supergroup("all", "a", "b")
    await office.stack.redis.config_resetstat()
    accepted = await office.send(Addressee(supergroup="all"), deliver_at=LATER)
    assert accepted.recipients == 2000
    stats = await office.stack.redis.info("commandstats")
    assert stats["cmdstat_fcall"]["calls"] == 1


async def test_a_repeat_gets_the_first_result_although_the_group_was_deleted(office: Office) -> None:
    await office.people(1)
    await office.group("ИВТ-21", 1)
    first = await office.send(Addressee(group="ИВТ-21"), repeat="key", deliver_at=LATER)
    await office.directory.groups.delete(TENANT, "ИВТ-21")
    again = await office.send(Addressee(group="ИВТ-21"), repeat="key", deliver_at=LATER)
    assert (again.key, again.repeated, again.deliver_at) == (first.key, True, first.deliver_at)
    assert (await refusal_of_new(office)).code == "GROUP_NOT_FOUND"


async def refusal_of_new(office: Office) -> Refused:
    with pytest.raises(Refused) as refused:
        await office.send(Addressee(group="ИВТ-21"), repeat="another")
    return refused.value


async def test_orders_of_a_batch_are_prepared_each_by_itself(office: Office) -> None:
    await office.people(1)
    orders: list[tuple[Order, None]] = [
        (order(Addressee(1), deliver_at=LATER), None),
        (order(Addressee(2)), None),
        (order(person(3), deliver_at=LATER), None),
    ]
    first, second, third = await office.sending.send_many(orders, ADMIN)
    assert not isinstance(first, Exception)
    assert isinstance(second, Refused)
    assert second.code == "USER_NOT_FOUND"
    assert not isinstance(third, Exception)


async def test_ids_of_other_systems_name_people_of_the_directory(office: Office) -> None:
    await office.people(3)
    users = office.directory.users
    for number in (1, 2):
        await users.update(TENANT, number, UserChange(external_ids=(f"1c:0000{number}", f"isu:{number}")))
    await users.create(TENANT, User("isu:1", "Own id", contacts={"echo": ["own"]}))
    await office.group("all", 1)
    line = Addressee("1c:00002", contacts={"1c": ["00002"]})
    accepted = await office.send(Addressee("1c:00001"), line, Addressee("isu:2"), Addressee(group="all"))
    preview = await office.sending.preview(order(Addressee("1c:00001"), Addressee("isu:1")), ADMIN)
    history = await office.stack.deliveries.read(accepted.key, TENANT)
    assert [one.id for one in history.recipients] == ["1", "2"], "each once, by the id of the person"
    names = [one.name for one in preview.delivery.recipients]
    assert names == ["Person 1", "Own id"], "an id of a person is no external one"
    unknown = await refusal(office, Addressee("1c:00009"))
    assert (unknown.code, unknown.path) == ("USER_NOT_FOUND", "recipients.0.id")
    given: list[dict[str, str | list[str]]] = [{"1c": ["00009"]}, {"1c": ["00001"], "echo": ["d"]}]
    for contacts in given:
        assert (await refusal(office, Addressee("1c:00001", contacts=contacts))).code == "UNKNOWN_CHANNEL"
    person = await users.find(TENANT, 3)
    teacher = Caller(TENANT, person=person)
    for one in (Addressee("1c:00001"), Addressee("1c:00009")):
        refused = await refusal(office, one, caller=teacher, sender=Sender(3))
        assert (refused.code, refused.detail) == ("NOT_OWNER", "The person is in no group of the sender.")
