"""The list from which a person selects groups, supergroups and people: tabs, pages, search. Pure.

A button carries what it shows, `choose:<list>:<verb>:<tab>:<page>[:<choice>]`, and a toggle names the state that it
leads to, so that pressing it twice does the same as once.
"""

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from core.model.content import KeyboardLimits, ParseMode
from core.model.text.characters import folded
from core.model.text.text_entities import escaped
from core.orders.choices import PERSON, Choice
from scenarios.bot.button_data import Button, InlineRows
from scenarios.words import in_language, sentence

PAGE = 8
"""Choices on one page, at most."""

_LONGEST_LABEL, _LONGEST_TITLES = 64, 1000
_WORD = re.compile(r"\w+")
_PRESS = re.compile(r"choose:([0-9a-f]{16}):(on|off|show|all|done|cancel):([gsp]):(\d{1,5})(?::([0-9a-f]{12}))?")
_TABS = {"group": "g", "supergroup": "s", PERSON: "p"}
_KINDS = {letter: kind for kind, letter in _TABS.items()}

Words = Mapping[str, str]
"""Name of a word → the text in place of Ada's own."""


class ChoicePress(Struct, frozen=True):
    """A pressed button of the list. `short`: of the choice, "" for none."""

    list_id: str
    verb: str
    kind: str
    page: int
    short: str


def choice_press(data: str) -> ChoicePress | None:
    """Return what a button of a list means; None for any other button."""
    found = _PRESS.fullmatch(data)
    return ChoicePress(found[1], found[2], _KINDS[found[3]], int(found[4]), found[5] or "") if found else None


class AddresseeSelection(Struct, frozen=True, omit_defaults=True):
    """The state of a person's selection. `chosen`: the selected choices, in the order of selection. `query`: what it
    searches for.
    """

    kind: str = "group"
    page: int = 0
    chosen: tuple[Choice, ...] = ()
    query: str = ""

    def after(self, press: ChoicePress, choices: Sequence[Choice]) -> "AddresseeSelection | None":
        """Return the selection after a press of a tab, a page or a toggle; None if the choice is gone."""
        shown = replace(self, kind=press.kind, page=press.page)
        if press.verb == "all":
            return replace(shown, query="")
        if press.verb not in ("on", "off"):
            return shown
        found = next((one for one in (*choices, *self.chosen) if one.short == press.short), None)
        if found is None:
            return None
        others = tuple(one for one in self.chosen if one.ref != found.ref)
        return replace(shown, chosen=(*others, found) if press.verb == "on" else others)

    def searching(self, query: str) -> "AddresseeSelection":
        return replace(self, query=" ".join(query.split())[:100], page=0)

    def found(self, choices: Sequence[Choice]) -> Sequence[Choice]:
        """Return the choices of the tab that is shown, as far as they fit the search."""
        return [one for one in choices if one.kind == self.kind and _fits(one.title, self.query)]


def _fits(title: str, query: str) -> bool:
    """Return whether each word of a search begins a word of a title; `101` begins one of `ИВТ-101`."""
    parts = _WORD.findall(folded(title))
    return all(any(part.startswith(word) for part in parts) for word in _WORD.findall(folded(query)))


def titles_of(chosen: Sequence[Choice]) -> str:
    """Return their titles, separated by commas; more than a message has room for end with `…`."""
    titles = ", ".join(one.title for one in chosen)
    return titles if len(titles) <= _LONGEST_TITLES else f"{titles[: _LONGEST_TITLES - 1]}…"


class ChoiceList(Struct, frozen=True):
    """The list as it is shown. `kinds`: the tabs. `words`: of the author, in place of Ada's own. `keyboard`: what a
    message of the channel has room for, None for no limits.
    """

    list_id: str
    kinds: Sequence[str]
    language: str
    words: Words = {}
    keyboard: KeyboardLimits | None = None

    def state(self, selection: AddresseeSelection, choices: Sequence[Choice]) -> str:
        """Return in HTML what is selected and searched for, and how to search if there is more than a page."""
        titles = titles_of(selection.chosen) or "–"
        lines = [self.word("selected").replace("{titles}", titles)]
        found = selection.found(choices)
        if selection.query:
            lines += [self.word("search" if found else "not_found").replace("{query}", selection.query)]
        elif len(found) > self._page_size(selection):
            lines += [self.word("hint")]
        return escaped("\n".join(lines), ParseMode.HTML)

    def rows(self, selection: AddresseeSelection, choices: Sequence[Choice]) -> InlineRows:
        """Return tabs, the toggles of one page, the way to other pages, and how the search or the selection ends."""
        found, size = selection.found(choices), self._page_size(selection)
        last = max(0, -(-len(found) // size) - 1)
        page = min(selection.page, last)
        toggles = [(self._toggle(one, selection, page),) for one in found[page * size : (page + 1) * size]]
        end = tuple(self._button(verb, selection) for verb in _end(selection))
        return (*self._tabs(selection), *toggles, *self._pages(selection, page, last), end)

    def _page_size(self, selection: AddresseeSelection) -> int:
        """Return how many choices a keyboard has room for beside tabs, two buttons for pages, and the end."""
        if self.keyboard is None:
            return PAGE
        tabs = len(self.kinds) if len(self.kinds) > 1 else 0
        buttons = self.keyboard.inline_buttons - tabs - 2 - len(_end(selection))
        return max(1, min(PAGE, buttons, self.keyboard.inline_rows - bool(tabs) - 2))

    def _tabs(self, selection: AddresseeSelection) -> InlineRows:
        if len(self.kinds) == 1:
            return ()
        return (tuple(self._tab(kind, is_shown=kind == selection.kind) for kind in self.kinds),)

    def _tab(self, kind: str, *, is_shown: bool) -> Button:
        label = self.word(kind)
        return {"text": f"• {label} •" if is_shown else label, "data": self._data("show", kind, 0)}

    def _toggle(self, one: Choice, selection: AddresseeSelection, page: int) -> Button:
        is_on = any(chosen.ref == one.ref for chosen in selection.chosen)
        label = f"✅ {one.title}" if is_on else one.title
        return {
            "text": label[:_LONGEST_LABEL],
            "data": self._data("off" if is_on else "on", selection.kind, page, one.short),
        }

    def _pages(self, selection: AddresseeSelection, page: int, last: int) -> InlineRows:
        if last == 0:
            return ()
        goals = ((page - 1, "‹ {page}"), (page + 1, "{page} ›"))
        return (tuple(self._page(goal, mark, last, selection) for goal, mark in goals if 0 <= goal <= last),)

    def _page(self, goal: int, mark: str, last: int, selection: AddresseeSelection) -> Button:
        """Return a button in words: where there are no buttons, it is a line with a number."""
        label = self.word("page").replace("{page}", str(goal + 1)).replace("{pages}", str(last + 1))
        return {"text": mark.replace("{page}", label), "data": self._data("show", selection.kind, goal)}

    def _button(self, verb: str, selection: AddresseeSelection) -> Button:
        return {"text": self.word(verb), "data": self._data(verb, selection.kind, selection.page)}

    def _data(self, verb: str, kind: str, page: int, short: str = "") -> str:
        return ":".join(filter(None, ("choose", self.list_id, verb, _TABS[kind], str(page), short)))

    def word(self, name: str) -> str:
        """Return one of `WORDS`."""
        return str(self.words.get(name) or "") or in_language(_OWN_WORDS[name], self.language)


def _end(selection: AddresseeSelection) -> Sequence[str]:
    return ("all", "done", "cancel") if selection.query else ("done", "cancel")


_OWN_WORDS = {
    "whom": sentence("choose_whom"),
    "selected": sentence("choose_selected", titles="{titles}"),
    "search": sentence("choose_search", query="{query}"),
    "not_found": sentence("choose_not_found", query="{query}"),
    "hint": sentence("choose_hint"),
    "all": sentence("choose_all"),
    "group": sentence("choose_groups"),
    "supergroup": sentence("choose_supergroups"),
    PERSON: sentence("choose_people"),
    "page": sentence("choose_page", page="{page}", pages="{pages}"),
    "done": sentence("choose_done"),
    "cancel": sentence("choose_cancel"),
    "nothing": sentence("choose_nothing"),
    "gone": sentence("choose_gone"),
    "nobody": sentence("choose_nobody"),
}
WORDS = tuple(_OWN_WORDS)
"""The names of the words that authors may replace."""
