"""The long poll for read marks, with answers that the sandbox does not give."""

import json
from typing import Any

import pytest

from couriers.sending import ReadMark
from couriers.vk.client import VkClient, read_marks
from tests.couriers.recorded_vk import Answer, RecordedVk
from tests.support.serving import serving

SERVER_METHOD, POLL = "groups.getLongPollServer", "longpoll"


def read(person: int, message: int, **more: Any) -> dict[str, Any]:
    update = {"type": "message_read", "object": {"from_id": person, "read_message_id": message, **more}}
    return {"ts": "2", "updates": [update]}


async def first_mark(*polls: Any, servers: tuple[Any, ...] = ()) -> tuple[ReadMark, list[str]]:
    """Return the first mark and the requests until then. After the answers `servers` the long poll has an address."""
    async with serving(RecordedVk()) as vk:
        server = {"response": {"server": vk.url.replace("method/", POLL), "key": "k", "ts": "1"}}
        vk.played[SERVER_METHOD] = [Answer(json.dumps(one)) for one in (*servers, server)]
        vk.played[POLL] = [Answer(json.dumps(one)) for one in polls]
        client = VkClient(vk.token, vk.url)
        marks = read_marks(client, 1)
        found = await anext(marks)
        await marks.aclose()  # type: ignore[attr-defined]
        await client.close()
        return found, [line for line in vk.requests if not line.startswith(" ")]


def asked_for_servers(requests: list[str]) -> int:
    return sum(SERVER_METHOD in line for line in requests)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("couriers.vk.client.PAUSE", 0)


@pytest.mark.parametrize("wrong", [[], "no", {}, {"error": {}}, {"response": []}, {"response": {"key": "k"}}], ids=str)
async def test_after_an_answer_without_a_server_vk_is_asked_again(wrong: Any) -> None:
    mark, requests = await first_mark(read(5, 7), servers=(wrong,))
    assert (mark, asked_for_servers(requests)) == (ReadMark("5", 7), 2)


@pytest.mark.parametrize(
    ("failed", "servers", "position"),
    [({"failed": 1, "ts": 9}, 1, "9"), ({"failed": 2}, 2, "1"), ({"failed": 3}, 2, "1"), ({"failed": 5}, 2, "1")],
)
async def test_a_new_key_is_asked_for_when_the_key_or_all_events_are_lost(
    failed: Any, servers: int, position: str
) -> None:
    mark, requests = await first_mark(failed, read(5, 7))
    assert (mark, asked_for_servers(requests)) == (ReadMark("5", 7), servers)
    assert f" ts={position} " in requests[-1]


@pytest.mark.parametrize(
    "strange",
    [
        read(5, 7, peer_id=2_000_000_001),
        {"ts": "2", "updates": [{"type": "message_read", "object": []}]},
        {"ts": "2", "updates": [{"type": "message_new", "object": {"from_id": 5, "read_message_id": 7}}]},
        {"ts": "2", "updates": [{"type": "message_read", "object": {"from_id": 5, "read_message_id": "7"}}]},
        {"ts": "2", "updates": None},
        {"updates": []},
        [],
    ],
    ids=["in a chat", "no object", "another event", "no number", "no updates", "no position", "a list"],
)
async def test_only_a_private_message_that_was_read_is_a_mark(strange: Any) -> None:
    mark, _ = await first_mark(strange, read(6, 8))
    assert mark == ReadMark("6", 8)
