"""Templates: a person has its own and uses those of its tenant, and sees none of another person."""

import pytest

from tests.delivery.conftest import Api
from tests.delivery.test_people_signed_in import as_person, people
from tests.support.servers import several_shards

__all__ = ["people", "several_shards"]
MESSAGE = {
    "text": "Пары не будет",
    "texts": {"en": "No class"},
    "answer": {"kind": "choice", "options": [{"key": "1", "text": "Да", "places": 2}, {"key": "2", "text": "Нет"}]},
    "content": {"inline": [[{"text": "Site", "url": "https://example.org"}]]},
}


@pytest.mark.usefixtures("people")
async def test_a_template_is_saved_listed_used_and_deleted_by_its_owner_only(api: Api) -> None:
    teacher, other = await as_person(api, 1), await as_person(api, 2)
    shared = await api.call("POST", "/v1/templates", {"title": "Of all", "message": {"text": "Hello"}})
    own = await teacher.call("POST", "/v1/templates", {"title": "Отмена", "message": MESSAGE})
    assert (own.status, own.json["message"], own.json["shared"]) == (201, MESSAGE, False)
    listed = (await teacher.call("GET", "/v1/templates")).json["templates"]
    assert [(one["title"], one["shared"]) for one in listed] == [("Отмена", False), ("Of all", True)]
    assert [one["title"] for one in (await other.call("GET", "/v1/templates")).json["templates"]] == ["Of all"]
    for browser, template in ((other, own), (teacher, shared)):
        refused = await browser.call("DELETE", f"/v1/templates/{template.json['id']}")
        assert (refused.status, refused.code) == (404, "TEMPLATE_NOT_FOUND")
    sent = {
        "sender": {"id": 9},
        "recipients": ["7=sms:+79990000007"],
        "deliver_at": "2030-01-01T12:00:00Z",
        "far": True,
    }
    assert (await api.call("POST", "/v1/deliveries", {**sent, **listed[0]["message"]})).status == 202
    assert (await teacher.call("DELETE", f"/v1/templates/{own.json['id']}")).status == 204
    again = await teacher.call("POST", "/v1/templates", {"title": "x", "message": {"text": "x"}})
    assert again.status == 201
    assert (await api.call("DELETE", "/v1/users/1")).status == 204
    assert await api.store.redis.keys("templates:*user:1") == []
    assert (await teacher.call("POST", "/v1/templates", {"title": "", "message": {}})).status in (400, 401)
