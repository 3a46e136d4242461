"""The requests of OpenAI's interface: /chat/completions, /audio/speech, /audio/transcriptions."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from aiohttp import BodyPartReader, web

from sandbox.models.refusal import Refusal, bad_request
from sandbox.models.sounds import TONES, TYPES, understood

VOICES = frozenset({"alloy", "ash", "ballad", "coral", "echo", "fable", "nova", "onyx", "sage", "shimmer", "verse"})
LONGEST_INPUT = 4096
_ROLES = frozenset({"system", "user", "assistant", "developer"})
_ENDINGS = frozenset({"flac", "mp3", "mp4", "mpeg", "mpga", "m4a", "ogg", "wav", "webm"})
_CREATED = 1_700_000_000


@dataclass(frozen=True, slots=True)
class Answered:
    """A right answer, and the model that was asked for: the address of a rule."""

    model: str
    body: bytes
    content_type: str


def check_key(request: web.Request, key: str) -> None:
    """Check the key of a request. Raises Refusal."""
    if request.headers.get("Authorization") != f"Bearer {key}":
        raise Refusal(401, "Incorrect API key provided.")


async def complete(request: web.Request) -> Answered:
    """Return an answer that repeats the question. Tokens are words."""
    body = await _object(request, {"model", "messages", "temperature", "max_tokens"})
    model, messages = _text(body, "model"), _messages(body)
    _check_range(body, "temperature", 0, 2, (int, float))
    _check_range(body, "max_tokens", 1, 10**6, (int,))
    words = f"Answer to: {messages[-1]['content']}".split(" ")
    kept = words[: body.get("max_tokens", len(words))]
    asked = sum(len(message["content"].split()) for message in messages)
    answer = {
        "id": f"chatcmpl-{sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:24]}",
        "object": "chat.completion",
        "created": _CREATED,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": " ".join(kept)},
                "finish_reason": "stop" if len(kept) == len(words) else "length",
            }
        ],
        "usage": {"prompt_tokens": asked, "completion_tokens": len(kept), "total_tokens": asked + len(kept)},
    }
    return _json(model, answer)


async def speak(request: web.Request) -> Answered:
    body = await _object(request, {"model", "input", "voice", "response_format", "speed", "instructions"})
    model, text, voice = _text(body, "model"), _text(body, "input"), _text(body, "voice")
    if len(text) > LONGEST_INPUT:
        raise bad_request(f"Input should have at most {LONGEST_INPUT} characters.")
    if voice not in VOICES:
        raise bad_request(f"Invalid voice {voice!r}.")
    form = body.get("response_format", "mp3")
    if form not in TONES or form == "wav16":
        raise bad_request(f"Invalid response_format {form!r}.")
    return Answered(model, TONES[form], TYPES[form])


async def transcribe(request: web.Request) -> Answered:
    if not request.content_type.startswith("multipart/"):
        raise bad_request("The body must be multipart/form-data.")
    fields: dict[str, str] = {}
    size = 0
    async for part in await request.multipart():
        if not isinstance(part, BodyPartReader) or not part.name:
            raise bad_request("A part has no name.")
        content = await part.read()
        if part.name == "file":
            size = _checked_file(part.filename, content)
        else:
            fields[part.name] = content.decode()
    if unknown := set(fields) - {"model", "language", "response_format", "prompt", "temperature"}:
        raise bad_request(f"Unrecognized request argument supplied: {min(unknown)}")
    if not size or not fields.get("model"):
        raise bad_request("file and model are required.")
    language = fields.get("language", "ru")
    if len(language) != 2 or not language.islower():
        raise bad_request(f"Invalid language {language!r}: must be of ISO 639-1.")
    return _json(fields["model"], {"text": understood(language)})


def _checked_file(name: str | None, content: bytes) -> int:
    if not name or name.rpartition(".")[2] not in _ENDINGS:
        raise bad_request(f"Invalid file format. Supported formats: {sorted(_ENDINGS)}")
    if not content:
        raise bad_request("The file is empty.")
    return len(content)


async def _object(request: web.Request, known: set[str]) -> dict[str, Any]:
    try:
        body = await request.json()
    except (ValueError, LookupError, RecursionError):
        raise bad_request("We could not parse the JSON body of your request.") from None
    if not isinstance(body, dict) or request.content_type != "application/json":
        raise bad_request("The body must be a JSON object.")
    if unknown := set(body) - known:
        raise bad_request(f"Unrecognized request argument supplied: {min(unknown)}")
    return body


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise bad_request(f"{name} must be a text that is not empty.")
    return value


def _messages(body: Mapping[str, Any]) -> list[dict[str, str]]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise bad_request("messages must be a list that is not empty.")
    for message in messages:
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            raise bad_request("A message must have a role.")
        _text(message, "content")
    return messages


def _check_range(body: Mapping[str, Any], name: str, least: float, most: float, kinds: tuple[type, ...]) -> None:
    value: Any = body.get(name)
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:  # type: ignore[operator]
        raise bad_request(f"{name} must be from {least:g} to {most:g}.")


def _json(model: str, answer: Mapping[str, Any]) -> Answered:
    return Answered(model, json.dumps(answer, ensure_ascii=False).encode(), "application/json")
