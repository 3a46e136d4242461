"""The requests of SaluteSpeech: tokens, text:synthesize, speech:recognize."""

import json
import time
import uuid

from aiohttp import web

from sandbox.models.openai_api import Answered
from sandbox.models.refusal import Refusal, bad_request
from sandbox.models.sounds import TONES, TYPES, understood

_NAMES = ("Nec", "Bys", "May", "Tur", "Ost", "Pon", "Kin")
SCOPES = frozenset({"SALUTE_SPEECH_PERS", "SALUTE_SPEECH_CORP", "SALUTE_SPEECH_B2B"})
VOICES = frozenset(
    f"{name}_{rate}" for name in ["Nec", "Bys", "May", "Tur", "Ost", "Pon", "Kin"] for rate in (8000, 24000)
)
FORMATS = frozenset({"wav16", "opus"})
LANGUAGES = frozenset({"ru-RU", "en-US", "kk-KZ"})
SOUNDS = ("audio/ogg", "audio/mpeg", "audio/x-pcm", "audio/flac")
LONGEST_TEXT = 4000
MOST_BYTES = 2 * 2**20
LIFETIME = 1800.0


class Tokens:
    """The tokens given out. `lifetime`: seconds for which one is valid."""

    def __init__(self, key: str, lifetime: float = LIFETIME) -> None:
        self._key = key
        self.lifetime = lifetime
        self._ends: dict[str, float] = {}

    async def give(self, request: web.Request) -> Answered:
        if request.headers.get("Authorization") != f"Basic {self._key}":
            raise Refusal(401, "Authorization error: header is incorrect")
        if not is_uuid(request.headers.get("RqUID", "")):
            raise bad_request("RqUID is missing or is not a UUID")
        scope = str((await request.post()).get("scope", ""))
        if request.content_type != "application/x-www-form-urlencoded" or scope not in SCOPES:
            raise bad_request("scope is empty or unknown")
        token, end = uuid.uuid4().hex, time.time() + self.lifetime
        self._ends[token] = end
        answer = {"access_token": token, "expires_at": round(end * 1000)}
        return Answered(scope, json.dumps(answer).encode(), "application/json")

    def check(self, request: web.Request) -> None:
        """Check the token of a request. Raises Refusal, also for a token that has expired."""
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self._ends.get(token, 0) < time.time():
            raise Refusal(401, "Unauthorized")

    def revoke(self) -> None:
        """End all tokens."""
        self._ends.clear()


async def synthesize(request: web.Request) -> Answered:
    text = (await request.read()).decode(errors="replace")
    if request.content_type not in ("application/text", "application/ssml"):
        raise bad_request(f"unsupported content type {request.content_type}")
    if not text.strip() or len(text) > LONGEST_TEXT:
        raise bad_request(f"the text must have 1 to {LONGEST_TEXT} characters")
    if request.content_type == "application/ssml" and not text.lstrip().startswith("<speak>"):
        raise bad_request("SSML must begin with <speak>")
    form, voice = request.query.get("format", "wav16"), request.query.get("voice", "Nec_24000")
    if form not in FORMATS or voice not in VOICES:
        raise bad_request(f"unknown format {form} or voice {voice}")
    return Answered(voice, TONES[form], TYPES[form])


async def recognize(request: web.Request) -> Answered:
    sound, language = await request.read(), request.query.get("language", "ru-RU")
    if request.content_type not in SOUNDS:
        raise bad_request(f"unsupported content type {request.content_type}")
    if not sound or len(sound) > MOST_BYTES:
        raise bad_request(f"the sound must have 1 to {MOST_BYTES} bytes")
    if language not in LANGUAGES:
        raise bad_request(f"unknown language {language}")
    answer = {"result": [understood(language)], "emotions": [], "status": 200}
    return Answered(language, json.dumps(answer, ensure_ascii=False).encode(), "application/json")


def is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False
