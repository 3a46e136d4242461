"""What VK receives from Ada, and what Ada makes of each answer, as it is recorded in vk_transcripts.txt.

`.venv/bin/python -m tests.couriers.test_vk_transcripts` records all anew; the difference is to be read, line by line.
"""

import asyncio
import json
import logging
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.updates.bot_calls import PressAnswer, TypingMark
from couriers.sending import Attachment, AttachmentType, Button, Content, Message, MessageFiles
from couriers.vk import courier as vk
from couriers.vk.client import VkClient, VkLongPoll, find_community
from couriers.vk.receive import VkCalls
from sandbox.vk.server import TOKEN
from tests.couriers.contract import UNUSUAL_TEXTS, message
from tests.couriers.file_server import PICTURE
from tests.couriers.recorded_vk import Answer, RecordedVk, without_chance
from tests.support.serving import serving

TRANSCRIPTS = Path(__file__).with_name("vk_transcripts.txt")
PERSON = "200001"
Transcripts = dict[str, list[str]]
"""Case → lines."""

SHORT = timedelta(seconds=0.5)
LONG = timedelta(seconds=30)

# the contents


def _contents(directory: Path) -> Mapping[str, list[Message]]:
    """Return what the courier sends, message by message, by the name of the case."""
    picture, document, voice = directory / "menu.png", directory / 'Меню "А".pdf', directory / "answer.ogg"
    picture.write_bytes(PICTURE)
    document.write_bytes(b"%PDF")
    voice.write_bytes(b"OggS")
    photo = Attachment(AttachmentType.PHOTO, path=str(picture))
    files = [
        photo,
        *(Attachment(kind, path=str(document)) for kind in (AttachmentType.DOCUMENT, AttachmentType.VIDEO)),
        Attachment(AttachmentType.VOICE, path=str(voice)),
        Attachment(AttachmentType.PHOTO, path=str(voice)),
        Attachment(AttachmentType.PHOTO, provider_id="photo-1_2_abc"),
        Attachment(AttachmentType.DOCUMENT, path=str(directory / "gone")),
    ]
    rows = [[Button("Суп", "soup"), Button("Сайт", url="https://x.org")]]

    def one(seed: str = "first", text: str = "Меню", **content: Any) -> Message:
        return Message(PERSON, text, seed, "1", "", content=Content(**content))

    return {
        "texts": [message(PERSON, text, f"seed {number}") for number, text in enumerate(UNUSUAL_TEXTS)],
        "inline buttons": [one(inline=rows)],
        "reply buttons, then none": [one(reply=[["Меню", "Назад"]]), one("second", reply=[])],
        "files": [one(attachments=[file]) for file in files] + [one("second", attachments=files)],
        "a voice without a text": [one(text="", attachments=[files[3]])],
        "a reply, and one to a message that is gone": [one(), one("second", reply_to="1"), one("third", reply_to="9")],
        "an edit that keeps the files, one with a file, one refused": [
            one(attachments=[photo]),
            one("second", "Суп", edit="1"),
            one("third", "Борщ", edit="1", attachments=[photo]),
            one("fourth", edit="9"),
        ],
        "a removal, and one that is refused": [one(), one("second", remove="1"), one("third", remove="9")],
        "a text that is too long": [one(text="я" * 5000, reply=[["Меню"]])],
    }


async def _record_contents(directory: Path) -> Transcripts:
    recorded = {}
    for name, messages in _contents(directory).items():
        async with serving(RecordedVk()) as server:
            courier = await vk.open(vk.Settings(server.token, server.url), directory)
            outcomes = [repr((await courier.attempt([one]))[0]) for one in messages]
            await courier.close()
            recorded[name] = [*server.requests, *outcomes]
    return recorded


async def _record_batch(directory: Path) -> Transcripts:
    """Two texts for three people each, in one request."""
    async with serving(RecordedVk()) as server:
        courier = await vk.open(vk.Settings(server.token, server.url), directory)
        people = [message(str(200_001 + number), text) for text in ("one", "two") for number in range(3)]
        outcomes = [repr(one) for one in await courier.attempt(people)]
        await courier.close()
        return {"a batch": [*server.requests, *outcomes]}


async def _record_bot(directory: Path) -> Transcripts:
    """What a bot calls, and the pages of its long poll: new events, a new key, a position that is lost."""
    async with serving(RecordedVk()) as server:
        client = VkClient(server.token, server.url)
        calls, poll = VkCalls(client), VkLongPoll(client)
        answer = PressAnswer("event", int(PERSON), int(PERSON))
        made: list[Any] = [
            await calls.make(TypingMark(int(PERSON))),
            await calls.make(answer),
            await calls.make(PressAnswer("event", int(PERSON), int(PERSON), "Записано")),
            await poll.sign_in(),
            position := (await poll.poll("")).position,
        ]
        server.write(PERSON, "one")
        made.append((page := await poll.poll(position)).position)
        made.append([event["object"]["message"]["text"] for event in page.events])
        server.long_poll.forget_key()
        server.write(PERSON, "two")
        made.append((await poll.poll("2")).position)
        made.append((await poll.poll("2")).position)
        made.append((await poll.poll("99")).position)
        server.played["longpoll"] = Answer('{"failed":3}')
        made.append((await poll.poll("3")).position)
        del server.played["longpoll"]
        server.write(PERSON, "three")
        made.append((await poll.poll("3")).position)
        await client.close()
        return {"a bot": [*server.requests, *map(repr, made)]}


# the answers

CODES = (
    *(1, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 17, 18, 27, 28, 29, 36, 100, 113, 900, 901, 902, 909, 911, 912, 913, 914),
    *(917, 924, 936, 945, 950, 983, 3300, 4711),
)


def _error(code: Any, **more: Any) -> str:
    return json.dumps({"error": {"error_code": code, "error_msg": "no", **more}})


def _call_error(code: int) -> str:
    error = {"method": "messages.send", "error_code": code, "error_msg": "no"}
    return json.dumps({"response": [False], "execute_errors": [error]})


def _entry(peer: str, **more: Any) -> dict[str, Any]:
    return {"peer_id": int(peer), "message_id": 7, "conversation_message_id": 3, **more}


def _peer_error(code: int) -> str:
    refused = _entry("200002", message_id=0, error={"code": code, "description": "no"})
    return json.dumps({"response": [[_entry(PERSON), refused]]})


PARAMETERS = [{"key": "method", "value": "execute"}, {"key": "code", "value": "return 1;"}]
ANSWERS = {
    **{f"error {code}": Answer(_error(code)) for code in CODES},
    "error 5 with all fields": Answer(_error(5, error_subcode=1130, ban_info={}, request_params=PARAMETERS)),
    "error 6 with its parameters": Answer(_error(6, request_params=PARAMETERS)),
    "error 6 with strange parameters": Answer(_error(6, request_params=5)),
    "error 14 with a picture": Answer(_error(14, captcha_sid="1", captcha_img="https://x.org", captcha_ts=1.5)),
    "error 17 with an address": Answer(_error(17, redirect_uri="https://x.org", request_params=PARAMETERS)),
    "error 5 without a text": Answer('{"error":{"error_code":5}}'),
    "error as a text": Answer('{"error":"no"}'),
    "error without a code": Answer('{"error":{}}'),
    "error 5 beside a response": Answer('{"error":{"error_code":5,"error_msg":"no"},"response":1}'),
    "error 5 with status 401": Answer(_error(5), 401),
    "no fields": Answer("{}"),
    "a list": Answer("[]"),
    "null": Answer("null"),
    "a number": Answer("5"),
    "nothing": Answer(""),
    "response null": Answer('{"response":null}'),
    "response 1": Answer('{"response":1}'),
    "response []": Answer('{"response":[]}'),
    "response {}": Answer('{"response":{}}'),
    "a page": Answer("<html>Technical works</html>", headers={"Content-Type": "text/html"}),
    "a page with status 502": Answer("<html>502</html>", 502),
    "a page that is not UTF-8": Answer("Технические работы".encode("cp1251")),
    "JSON that is nested too deep": Answer("[" * 100_000),
    "half a JSON": Answer('{"response":'),
    "a redirect 302": Answer("", 302, {"Location": "/method/elsewhere"}),
    "a redirect 307": Answer("", 307, {"Location": "/method/elsewhere"}),
    "lost before": Answer(lost="before"),
    "lost after": Answer(lost="after"),
    "silence": Answer(lost="silence"),
}
OF_EXECUTE = {
    **{f"error {code} of the call": Answer(_call_error(code)) for code in CODES},
    **{f"error {code} of one peer": Answer(_peer_error(code)) for code in CODES},
    "a failed call without its error": Answer('{"response":[false]}'),
    "a failed call with the error of another method": Answer(
        '{"response":[false],"execute_errors":[{"method":"users.get","error_code":6,"error_msg":"no"}]}'
    ),
    "one peer is missing": Answer(json.dumps({"response": [[_entry(PERSON)]]})),
    "success with status 502": Answer(json.dumps({"response": [[_entry(PERSON), _entry("200002")]]}), 502),
    "an entry without a number": Answer(json.dumps({"response": [[{"peer_id": int(PERSON), "message_id": 7}]]})),
}
OF_LONG_POLL = {
    "events": Answer('{"ts":"5","updates":[{"type":"message_new"},{"type":"other"}]}'),
    "an event that is none": Answer('{"ts":"5","updates":[7,{"type":"message_new"}]}'),
    "no events": Answer('{"ts":"5","updates":null}'),
    "a position as a number": Answer('{"ts":5,"updates":[]}'),
    "no position": Answer('{"updates":[]}'),
    "failed 1": Answer('{"failed":1,"ts":9}'),
    "failed 2": Answer('{"failed":2}'),
    "failed 3": Answer('{"failed":3}'),
}

Try = Callable[[VkClient, Path], Awaitable[Any]]


async def _try_execute(client: VkClient, directory: Path) -> Any:
    return await _attempt(client, [message(PERSON), message("200002")])


async def _try_photo(client: VkClient, directory: Path) -> Any:
    return await _try_content(client, attachments=[Attachment(AttachmentType.PHOTO, path=str(directory / "menu.png"))])


async def _try_document(client: VkClient, directory: Path) -> Any:
    path = str(directory / "menu.png")
    return await _try_content(client, attachments=[Attachment(AttachmentType.DOCUMENT, path=path)])


async def _try_edit(client: VkClient, directory: Path) -> Any:
    return await _try_content(client, edit="1")


async def _try_removal(client: VkClient, directory: Path) -> Any:
    return await _try_content(client, remove="1")


async def _try_content(client: VkClient, **content: Any) -> Any:
    return await _attempt(client, [Message(PERSON, "Меню", "delivery", "1", "", content=Content(**content))])


async def _attempt(client: VkClient, messages: list[Message]) -> Any:
    return await vk.Vk(client, 1, MessageFiles(2**20)).attempt(messages)


async def _try_sign_in(client: VkClient, directory: Path) -> Any:
    return await find_community(client)


async def _try_typing(client: VkClient, directory: Path) -> Any:
    return await VkCalls(client).make(TypingMark(1))


async def _try_first_poll(client: VkClient, directory: Path) -> Any:
    poll = VkLongPoll(client)
    return await poll.sign_in(), await poll.poll("")


async def _try_poll(client: VkClient, directory: Path) -> Any:
    poll = VkLongPoll(client)
    return await poll.sign_in(), await poll.poll("1")


TRIES: Mapping[str, tuple[Try, Mapping[str, Answer]]] = {
    "execute": (_try_execute, ANSWERS | OF_EXECUTE),
    "photos.getMessagesUploadServer": (_try_photo, ANSWERS),
    "upload": (_try_document, ANSWERS),
    "photos.saveMessagesPhoto": (_try_photo, ANSWERS),
    "docs.save": (_try_document, ANSWERS),
    "messages.edit": (_try_edit, ANSWERS),
    "messages.delete": (_try_removal, ANSWERS),
    "groups.getById": (_try_sign_in, ANSWERS),
    "messages.setActivity": (_try_typing, ANSWERS),
    "groups.getLongPollServer": (_try_first_poll, ANSWERS),
    "longpoll": (_try_poll, ANSWERS | OF_LONG_POLL),
}
"""The request that is answered → who makes it, and the answers."""


async def _record_answers(method: str, directory: Path) -> Transcripts:
    """Return what follows, with the requests that were made, and the answers that it follows from."""
    (directory / "menu.png").write_bytes(PICTURE)
    attempt, answers = TRIES[method]
    recorded: dict[str, list[str]] = {}
    for name, answer in answers.items():
        async with serving(RecordedVk()) as server, AsyncExitStack() as closing:
            client = VkClient(server.token, server.url, SHORT if answer.lost == "silence" else LONG)
            closing.push_async_callback(client.close)
            server.write(PERSON, "a message that may be edited")
            server.played[method] = answer
            try:
                result = repr(await attempt(client, directory))
            except Exception as error:  # noqa: BLE001 - whatever it is, it is recorded
                result = f"{type(error).__name__}: {error}"
            made = [line.split()[1].rpartition("/")[2] for line in server.requests if not line.startswith(" ")]
            made = ["upload" if one == "KEY" else one for one in made]
            recorded.setdefault(f"{without_chance(result)} after {', '.join(made)}", []).append(name)
    return {f"answers of {method}": [f"{result} ← {'; '.join(names)}" for result, names in recorded.items()]}


CONTENTS = (_record_contents, _record_batch, _record_bot)


def read_transcripts() -> Transcripts:
    parts = TRANSCRIPTS.read_text().removeprefix("# ").split("\n# ")
    return {name: text.splitlines() for name, _, text in (part.partition("\n") for part in parts)}


@pytest.mark.parametrize("record", CONTENTS)
async def test_vk_receives_what_is_recorded(record: Callable[[Path], Awaitable[Transcripts]], tmp_path: Path) -> None:
    recorded = read_transcripts()
    for name, lines in (await record(tmp_path)).items():
        assert lines == recorded[name], name


@pytest.mark.parametrize("method", TRIES)
async def test_each_answer_means_what_is_recorded_and_no_text_has_the_token(
    method: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ((name, lines),) = (await _record_answers(method, tmp_path)).items()
    assert lines == read_transcripts()[name]
    assert TOKEN not in caplog.text + "".join(lines)


async def _record_all(directory: Path) -> Transcripts:
    parts = [await record(directory) for record in CONTENTS]
    parts += [await _record_answers(method, directory) for method in TRIES]
    return {name: lines for part in parts for name, lines in part.items()}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        transcripts = asyncio.run(_record_all(Path(folder)))
    TRANSCRIPTS.write_text("".join("\n".join([f"# {name}", *lines, ""]) for name, lines in transcripts.items()))
