"""The words and times of the console in tables for people."""

import functools
from collections.abc import Mapping
from datetime import datetime, tzinfo
from importlib import resources

import msgspec

_TIMES = {"ru": "%d.%m.%Y %H:%M", "en": "%Y-%m-%d %H:%M"}


@functools.cache
def console_words(language: str) -> Mapping[str, str | Mapping[str, str]]:
    folder = resources.files("delivery").joinpath("console/static/words")
    texts = [folder.joinpath(name).read_bytes() for name in (f"{language}.json", f"pages/{language}.json")]
    return {
        key: text
        for one in texts
        for key, text in msgspec.json.decode(one, type=dict[str, str | dict[str, str]]).items()
    }


def console_word(table: str, value: str, language: str) -> str:
    return str(console_words(language).get(f"{table}.{value}", value.replace("_", " ")))


def local_time(at: datetime, zone: tzinfo, language: str) -> str:
    return f"{at.astimezone(zone):{_TIMES[language]}}"
