"""The rules of sending over HTTP: quotas, quiet hours, groups, who may send urgently."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.model.delivery import Quota
from core.model.hours import QuietHours, TenantQuietHours
from core.model.people import Group, Supergroup, User, UserChange
from core.orders import Sending, SendingPolicy
from delivery.http.context import ApiServices
from tests.delivery.conftest import Api, Couriers, delivery_body
from tests.delivery.test_bulk import BULK, LINES, ndjson
from tests.support.waiting import until

DAY = timedelta(days=1)
TRAINER = {"id": 42, "role": "trainer"}
LATER = "2030-01-01T12:00:00Z"


async def limited(api: Api) -> Api:
    """The API with a key that has only the scopes send and read."""
    _, secret = await api.services.api_keys.create("limited", ["send", "read"])
    return api.as_key(secret)


class TestQuota:
    @pytest.fixture
    def services(self, services: ApiServices) -> ApiServices:
        rules = SendingPolicy({"trainer": Quota(4, DAY)})
        core = services.core
        sending = Sending(core.store, core.deliveries, core.directory, rules)
        return replace(services, core=replace(core, sending=sending))

    async def test_the_fifth_delivery_is_refused_with_the_time_to_wait(self, api: Api) -> None:
        assert (await api.call("GET", "/v1/quota?sender=42")).json == {"used": 0, "limit": None, "resets_in": 0}
        body = delivery_body(sender=TRAINER, deliver_at=LATER, far=True)
        for left in (3, 2, 1, 0):
            made = await api.call("POST", "/v1/deliveries", body)
            assert made.status == 202
            assert made.headers["RateLimit-Policy"] == '"sender";q=4;w=86400'
            assert made.headers["RateLimit"].startswith(f'"sender";r={left};t=86')
        before = await api.keys()
        refused = await api.call("POST", "/v1/deliveries", body, headers={"Idempotency-Key": "fifth"})
        assert (refused.status, refused.code) == (429, "QUOTA_EXCEEDED")
        wait = int(refused.headers["Retry-After"])
        assert 86_000 < wait <= 86_400
        assert refused.headers["RateLimit"] == f'"sender";r=0;t={wait}'
        assert refused.headers["RateLimit-Policy"] == '"sender";q=4;w=86400'
        assert await api.keys() == before
        state = (await api.call("GET", "/v1/quota?sender=42")).json
        assert (state["used"], state["limit"]) == (4, 4)
        assert 0 <= wait - state["resets_in"] < 10

    async def test_a_bulk_request_takes_from_the_same_quota_line_by_line(self, api: Api) -> None:
        await api.call("POST", "/v1/deliveries", delivery_body(sender=TRAINER, deliver_at=LATER, far=True))
        body = ndjson(*[delivery_body(sender=TRAINER, deliver_at=LATER, far=True)] * 5)
        answered = await api.call("POST", BULK, body, headers=LINES)
        assert answered.body.count(b'"status":202') == 3
        assert answered.body.count(b'"code":"QUOTA_EXCEEDED"') == 2

    async def test_the_quota_of_a_role_is_known_before_the_first_delivery(self, api: Api) -> None:
        await api.services.core.directory.users.create("default", User(42, role="trainer"))
        expected = {"used": 0, "limit": 4, "resets_in": 0}
        assert (await api.call("GET", "/v1/quota?sender=42")).json == expected
        assert (await api.call("GET", "/v1/quota?sender=7&role=trainer")).json == expected
        assert (await api.call("GET", "/v1/quota")).code == "REQUIRED"


class TestQuietHours:
    @pytest.fixture
    def services(self, services: ApiServices) -> ApiServices:
        """It is always within quiet hours: they begin an hour ago and end in an hour."""
        now = datetime.now(UTC)
        begin, end = ((now + timedelta(hours=hours)).time().replace(microsecond=0) for hours in (-1, 1))
        rules = SendingPolicy(quiet_hours=TenantQuietHours(QuietHours(begin, end)))
        core = services.core
        sending = Sending(core.store, core.deliveries, core.directory, rules)
        return replace(services, core=replace(core, sending=sending))

    async def test_the_answer_has_the_new_and_the_requested_time(self, api: Api) -> None:
        before = datetime.now(UTC)
        made = await api.call("POST", "/v1/deliveries", delivery_body(), headers={"Idempotency-Key": "a"})
        assert (made.status, made.json["state"]) == (202, "scheduled")
        assert abs(datetime.fromisoformat(made.json["moved_from"]) - before) < timedelta(seconds=10)
        wait = datetime.fromisoformat(made.json["deliver_at"]) - before
        assert timedelta(minutes=59) < wait < timedelta(minutes=67)
        again = await api.call("POST", "/v1/deliveries", delivery_body(), headers={"Idempotency-Key": "a"})
        assert again.json == made.json
        history = (await api.call("GET", made.headers["Location"])).json
        assert history["moved_from"] == made.json["moved_from"]
        requested = (before + DAY).isoformat()
        moved = await api.call("PATCH", made.headers["Location"], {"deliver_at": requested})
        assert moved.json["moved_from"][:19] == requested[:19]
        assert datetime.fromisoformat(moved.json["deliver_at"]) > before + DAY + timedelta(minutes=59)

    async def test_urgent_needs_its_scope(self, api: Api) -> None:
        sent = await api.call("POST", "/v1/deliveries", delivery_body(urgent=True))
        assert (sent.json["state"], sent.json["moved_from"]) == ("released", None)
        where, other = sent.headers["Location"], await limited(api)
        later = (datetime.now(UTC) + DAY).isoformat()
        for call in (
            ("POST", "/v1/deliveries", delivery_body(urgent=True)),
            ("PATCH", where, {"deliver_at": later, "urgent": True}),
            ("POST", f"{where}/retry", {"urgent": True}),
        ):
            refused = await other.call(*call)
            assert (refused.status, refused.code) == (403, "URGENT_NOT_ALLOWED")
        assert (await other.call("POST", "/v1/deliveries", delivery_body(urgent=False))).json["moved_from"]
        _, secret = await api.services.api_keys.create("alarm", ["send", "urgent"])
        alarm = await api.as_key(secret).call("POST", "/v1/deliveries", delivery_body(urgent=True))
        assert alarm.json["state"] == "released"

    async def test_the_next_reminder_is_shown_at_their_end(self, api: Api) -> None:
        answer = {"kind": "confirm", "remind": {"after": "PT1M", "every": "PT2H", "most": 3}}
        sent = await api.call("POST", "/v1/deliveries", delivery_body(urgent=True, answer=answer))
        deliveries = (await api.call("GET", "/v1/deliveries")).json["deliveries"]
        for shown in ((await api.call("GET", sent.headers["Location"])).json, deliveries[0]):
            wait = datetime.fromisoformat(shown["reminders"]["next_at"]) - datetime.now(UTC)
            assert timedelta(minutes=58) < wait < timedelta(minutes=62)

    async def test_a_retry_is_refused(self, api: Api) -> None:
        sent = await api.call("POST", "/v1/deliveries", delivery_body(urgent=True))
        refused = await api.call("POST", sent.headers["Location"] + "/retry")
        assert (refused.status, refused.code) == (409, "QUIET_HOURS")


class TestGroups:
    @pytest.fixture(autouse=True)
    async def groups(self, services: ApiServices) -> None:
        directory = services.core.directory
        for number in (1, 2):
            contacts = {"telegram": [f"10000{number}"], "sms": [f"+7999000000{number}"]}
            await directory.users.create("default", User(number, contacts=contacts))
        await directory.users.update("default", 2, UserChange(opt_out=["sms"]))
        await directory.groups.create("default", Group("ИВТ-21"), [1, 2])
        await directory.groups.create("default", Group("choir", virtual=True), [2])
        await directory.supergroups.create("default", Supergroup("1 курс", groups=["ИВТ-21", "choir"]))
        await directory.users.create("default", User(42, role="trainer"))

    @pytest.mark.parametrize(
        "recipients",
        [
            [{"group": "ИВТ-21"}, {"id": 2}, {"supergroup": "1 курс"}],
            ["group:ИВТ-21", "2", "supergroup: 1 курс"],
        ],
        ids=["objects", "lines"],
    )
    async def test_groups_and_people_of_the_directory_are_sent_to_once(
        self, api: Api, courier: Couriers, recipients: list[Any]
    ) -> None:
        telegram, sms = await courier("telegram"), await courier("sms")
        channels = ["telegram", "sms"]
        made = await api.call("POST", "/v1/deliveries", delivery_body(recipients=recipients, channels=channels))
        assert (made.status, made.json["recipients"]) == (202, 2)

        async def is_finished() -> bool:
            return bool((await api.call("GET", made.headers["Location"])).json["state"] == "finished")

        await until(is_finished)
        assert (sorted(telegram.addresses), sms.addresses) == (["100001", "100002"], ["+79990000001"])
        history = (await api.call("GET", made.headers["Location"])).json
        assert {one["id"]: one["origin"] for one in history["recipients"]} == {1: ["ИВТ-21"], 2: ["ИВТ-21"]}
        outcome = next(one["outcomes"]["sms"] for one in history["recipients"] if one["id"] == 2)
        assert outcome == {"status": "skipped", "reason": "opted_out"}
        assert history["channels"]["sms"] == {"state": "reported", "sent": 1, "skipped": 1}

    @pytest.mark.parametrize(
        ("status", "code", "path", "recipient"),
        [
            (400, "USER_NOT_FOUND", "recipients.0.id", {"id": 77}),
            (400, "USER_NOT_FOUND", "recipients.0.id", "77"),
            (400, "GROUP_NOT_FOUND", "recipients.0.group", {"group": "ИВТ-99"}),
            (400, "SUPERGROUP_NOT_FOUND", "recipients.0.supergroup", {"supergroup": "ИВТ-21"}),
            (403, "NOT_OWNER", "recipients.0.group", {"group": "ИВТ-21"}),
            (400, "RECIPIENT_AMBIGUOUS", "recipients.0", {"group": "ИВТ-21", "contacts": {"sms": "+7"}}),
        ],
    )
    async def test_each_refusal_names_the_recipient_and_leaves_no_trace(
        self, api: Api, status: int, code: str, path: str, recipient: object
    ) -> None:
        trainer, before = await limited(api), await api.keys()
        body = delivery_body(recipients=[recipient], sender={"id": 42})
        refused = await trainer.call("POST", "/v1/deliveries", body, headers={"Idempotency-Key": "a"})
        assert (refused.status, refused.code, refused.json["errors"][0]["path"]) == (status, code, path)
        assert await api.keys() == before

    async def test_tenants_do_not_see_each_others_groups(self, api: Api) -> None:
        _, secret = await api.services.api_keys.create("other", ["admin"], "other")
        for recipient, code in (({"group": "ИВТ-21"}, "GROUP_NOT_FOUND"), ({"id": 1}, "USER_NOT_FOUND")):
            refused = await api.as_key(secret).call("POST", "/v1/deliveries", delivery_body(recipients=[recipient]))
            assert refused.code == code
