"""The long poll for read marks, with answers that the sandbox does not give."""

from collections.abc import Mapping
from typing import Any

import pytest

from core.courier import ReadMark
from couriers.vk.read_mark_poll import read_marks
from providers.vk.client import Client

SERVER = {"response": {"server": "https://lp.vk.com", "key": "k", "ts": "1"}}


class Answers:
    """VK that gives these answers in turn; the last one is repeated. `asked`: the parameters of each call."""

    def __init__(self, *answers: Any) -> None:
        self.asked: list[dict[str, Any]] = []
        self._answers = list(answers)

    def next(self, parameters: dict[str, Any]) -> Any:
        self.asked.append(parameters)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def read(person: int, message: int, **more: Any) -> dict[str, Any]:
    update = {"type": "message_read", "object": {"from_id": person, "read_message_id": message, **more}}
    return {"ts": "2", "updates": [update]}


class PlayedClient(Client):
    """A client whose service gives these answers."""

    def __init__(self, servers: Answers, polls: Answers) -> None:
        super().__init__("vk1.a.token", None)
        self._servers, self._polls = servers, polls

    async def request(self, method: str, parameters: Mapping[str, str | int]) -> Any:
        return self._servers.next(dict(parameters))

    async def get(self, url: str, parameters: dict[str, Any]) -> Any:
        return self._polls.next(parameters)


async def first_mark(servers: Answers, polls: Answers) -> ReadMark:
    marks = read_marks(PlayedClient(servers, polls), 1)
    found = await anext(marks)
    await marks.aclose()  # type: ignore[attr-defined]
    return found


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("couriers.vk.read_mark_poll.PAUSE", 0)


@pytest.mark.row("D-37")
@pytest.mark.parametrize("wrong", [[], "no", {}, {"error": {}}, {"response": []}, {"response": {"key": "k"}}], ids=str)
async def test_after_an_answer_without_a_server_vk_is_asked_again(wrong: Any) -> None:
    servers = Answers(wrong, SERVER)
    assert await first_mark(servers, Answers(read(5, 7))) == ReadMark("5", 7)
    assert len(servers.asked) == 2


@pytest.mark.row("D-37")
@pytest.mark.parametrize(("failed", "times"), [(1, 1), (2, 2), (3, 2)])
async def test_a_new_key_is_asked_for_when_the_key_or_all_events_are_lost(failed: int, times: int) -> None:
    servers = Answers(SERVER)
    polls = Answers({"failed": failed, "ts": "9"}, read(5, 7))
    assert await first_mark(servers, polls) == ReadMark("5", 7)
    assert len(servers.asked) == times
    assert polls.asked[1]["ts"] == ("9" if times == 1 else "1")


@pytest.mark.row("D-37")
@pytest.mark.parametrize(
    "strange",
    [
        read(5, 7, peer_id=2_000_000_001),
        {"ts": "2", "updates": [{"type": "message_read", "object": []}]},
        {"ts": "2", "updates": [{"type": "message_new", "object": {"from_id": 5, "read_message_id": 7}}]},
        {"ts": "2", "updates": [{"type": "message_read", "object": {"from_id": 5, "read_message_id": "7"}}]},
        {"ts": "2", "updates": None},
    ],
    ids=["in a chat", "no object", "another event", "no number", "no updates"],
)
async def test_only_a_private_message_that_was_read_is_a_mark(strange: dict[str, Any]) -> None:
    assert await first_mark(Answers(SERVER), Answers(strange, read(6, 8))) == ReadMark("6", 8)
