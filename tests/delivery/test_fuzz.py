"""Random texts and ids are returned as they were given. Random requests: tests/delivery/test_schemathesis.py."""

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.delivery.conftest import Api, delivery_body

patient = settings(
    max_examples=settings().max_examples // 4,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=200))
@example(text='[]{}"\\/:,<script>&quot;\u2028\u2029\r\n\t\x1b')
@example(text='{"recipients": []}')
@patient
async def test_every_text_that_is_not_white_space_is_kept_unchanged(api: Api, text: str) -> None:
    response = await api.call("POST", "/v1/deliveries", delivery_body(text=text))
    if text.isspace():
        assert response.code == "TEXT_EMPTY"
        return
    history = await api.call("GET", f"/v1/deliveries/{response.json['id']}")
    assert history.json["text"] == text
    assert (history.json["tags"], history.json["recipients"][0]["origin"]) == ([], [])


IDS = st.integers(-(2**63), 2**63 - 1) | st.text(min_size=1, max_size=128).filter(str.isprintable)


@given(sender=IDS, recipients=st.lists(IDS, min_size=1, max_size=5, unique_by=str))
@patient
async def test_ids_are_returned_unchanged(api: Api, sender: int | str, recipients: list[int | str]) -> None:
    body = delivery_body(sender={"id": sender}, recipients=[{"id": one, "contacts": {}} for one in recipients])
    made = await api.call("POST", "/v1/deliveries", body)
    history = await api.call("GET", made.headers["Location"])
    assert history.status == 200, (made, history)
    assert history.json["sender"]["id"] == sender
    assert [one["id"] for one in history.json["recipients"]] == recipients
    tracked = await api.call("POST", "/v1/track", {"history_key": made.json["history_key"], "timeout": 0})
    assert tracked.json["history"]["id"] == made.json["id"]
