"""The data of buttons that Ada makes: the text in a normal form (C-07), the scenario to which one leads (C-08), with a
value for it, or the page that it shows (C-102). Pure.

Under page 2 of 3 of a long list the buttons `‹ Page 1 of 3` and `Page 3 of 3 ›` each show the page to which they lead.
They are in words, because where there are no buttons each is a line with a number.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b

from msgspec import Struct

from scenarios.bot.data import Data

LONGEST = 60

Button = Mapping[str, str]
"""`text`, and either `data` (what the callback event has) or `url`."""
InlineRows = tuple[tuple[Button, ...], ...]

# GOST 7.79, system B, without its apostrophes and double letters for signs.
_CYRILLIC = {
    **dict(zip("абвгдезийклмнопрстуфыэ", "abvgdeziyklmnoprstufye", strict=True)),
    "ё": "e",
    "ж": "zh",
    "х": "kh",
    "ц": "ts",
    "ч": "ch",
    "ш": "sh",
    "щ": "shch",
    "ъ": "",
    "ь": "",
    "ю": "yu",
    "я": "ya",
    "і": "i",
    "ї": "yi",
    "є": "ye",
    "ґ": "g",
    "ў": "u",
}
_TABLE = str.maketrans(_CYRILLIC)
_OTHER = re.compile(r"[^a-z0-9 _-]")


def normalise(text: str) -> str:
    """Lower case, Cyrillic in Latin letters, only `[a-z0-9_-]`, spaces as `_`, at most 60 characters.

    A normalised text stays as it is. A text without letters and digits, such as an emoji alone, becomes empty.
    """
    latin = unicodedata.normalize("NFC", text).lower().translate(_TABLE)
    plain = _OTHER.sub("", re.sub(r"\s", " ", unicodedata.normalize("NFKD", latin).lower()))
    return "_".join(plain.split())[:LONGEST]


JUMP = ":"
"""Callback data that begins so names a scenario; no trigger is needed."""

VALUE = "?"
"""Stands between the scenario of a button and the value that its actions see as `{button_value}`: `take?12`."""

LONGEST_DATA = 64
"""Bytes of callback data, by Telegram's Bot API."""

_TURN = re.compile(r"page:([0-9a-f]{16}):([0-9]{1,5})")


def option_data(options: Sequence[str]) -> dict[str, str]:
    """Return the data of the buttons of those options whose normal form is that of another one, too: `C`, `C++`."""
    count = Counter(map(normalise, options))
    return {one: _hashed(one) for one in options if count[normalise(one)] > 1}


def _hashed(option: str) -> str:
    return f"option:{blake2b(option.encode(), digest_size=8).hexdigest()}"


def jump_data(goal: str) -> str:
    """Return the callback data of a button that leads to a scenario, with a value or without. A name that is too long
    is replaced by its hash. With a long value the data may be longer than LONGEST_DATA.
    """
    data = JUMP + goal
    if len(data.encode()) <= LONGEST_DATA:
        return data
    scenario, mark, value = goal.partition(VALUE)
    return f"{JUMP}#{blake2b(scenario.encode(), digest_size=16).hexdigest()}{mark}{value}"


def jump(callback_data: str) -> str:
    """Return the goal that a button names; empty if it names none."""
    return callback_data.removeprefix(JUMP) if callback_data.startswith(JUMP) else ""


def scenario_of(goal: str) -> str:
    """Return the scenario of a goal without its value."""
    return goal.partition(VALUE)[0]


def value_of(callback_data: str) -> str:
    """Return the value of a pressed button; empty if it has none."""
    return jump(callback_data).partition(VALUE)[2]


class PageTurn(Struct, frozen=True):
    """A press. `list_id`: of which list; `page`: from 0."""

    list_id: str
    page: int


def list_id(identity: str) -> str:
    """Return the id of the list that this step shows, which is short enough for the data of a button."""
    return blake2b(identity.encode(), digest_size=8).hexdigest()


def page_rows(options: Sequence[str], size: int, shown: PageTurn, words: str, columns: int = 1) -> InlineRows:
    """Return the buttons of a page: `columns` options in each row, no two of which send the same, and a row that turns
    the pages. `words`: of a page, `Page {page} of {pages}`.
    """
    own, pages = option_data(options), -(-len(options) // size)
    page = min(shown.page, pages - 1)
    turns = tuple(
        {"text": mark.format(words.format(page=goal + 1, pages=pages)), "data": f"page:{shown.list_id}:{goal}"}
        for goal, mark in ((page - 1, "‹ {}"), (page + 1, "{} ›"))
        if 0 <= goal < pages
    )
    of_page = [
        {"text": one, "data": own[one] if one in own else normalise(one)}
        for one in options[page * size : (page + 1) * size]
    ]
    rows = tuple(tuple(of_page[n : n + columns]) for n in range(0, len(of_page), columns))
    return (*rows, turns) if turns else rows


def is_turn(data: str) -> bool:
    return _TURN.fullmatch(data) is not None


def is_of_list(data: str) -> bool:
    """Return whether a button belongs to a list that a step shows: a page, a choice. Without the step it is an old
    one.
    """
    return is_turn(data) or data.startswith("choose:")


def pressed_message(event: Mapping[str, Data]) -> Data:
    """Return the id of the message whose button was pressed; "" for a text."""
    return event.get("message_id") or "" if event.get("callback_data") is not None else ""


def turn_of(event: Mapping[str, Data]) -> PageTurn | None:
    """Return which page a press asks for; None for any other event."""
    found = _TURN.fullmatch(str(event.get("callback_data") or ""))
    return PageTurn(found[1], int(found[2])) if found else None
