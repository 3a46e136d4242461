"""The keyboards of the teacher's dialog. Pure.

The content of a button is `s.<dialog>.<step>.<action>[.<argument>]`. A toggle names the state that it leads to, so that
pressing it twice does the same as once.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from bots.catalogue import text
from bots.conversation.state import CONFIRM, SELECT, TIME, State
from bots.replies import Button, Buttons
from core.orders.choices import Choice

PAGE = 8
"""Groups on one page of the keyboard."""

Sign = Callable[[str], str]
"""Returns the data for the content of a button."""


class Press(Struct, frozen=True):
    """The content of a pressed button of the dialog."""

    dialog: str
    step: str
    action: str
    argument: str = ""

    @classmethod
    def read(cls, content: str) -> "Press | None":
        """Return the press of a button; None for a button of something else."""
        parts = content.split(".")
        return cls(*parts[1:]) if parts[0] == "s" and len(parts) in (4, 5) else None


class Keyboards:
    """For one person and one state of its dialog."""

    def __init__(self, sign: Sign, locale: str, state: State) -> None:
        self._sign = sign
        self._locale = locale
        self._state = state

    def selection(self, choices: Sequence[Choice]) -> Buttons:
        """Return tabs, the toggles of one page, the way to other pages, Done and Cancel."""
        shown = [one for one in choices if one.kind == self._state.kind]
        page = min(self._state.page, last_page(shown))
        toggles = [[self._toggle(one)] for one in shown[page * PAGE : (page + 1) * PAGE]]
        end = [self._button("button_done", SELECT, "done"), *self.cancel()[0]]
        return [self._tabs(), *toggles, *self._pages(page, last_page(shown)), end]

    def _tabs(self) -> list[Button]:
        return [self._tab("tab_groups", "group"), self._tab("tab_supergroups", "supergroup")]

    def _tab(self, name: str, kind: str) -> Button:
        label = text(name, self._locale)
        return self._made(f"• {label} •" if kind == self._state.kind else label, SELECT, "tab", kind)

    def _toggle(self, choice: Choice) -> Button:
        is_on = choice.ref in self._state.chosen
        label = f"✅ {choice.title}" if is_on else choice.title
        return self._made(label[:64], SELECT, "off" if is_on else "on", choice.short)

    def _pages(self, page: int, last: int) -> Sequence[Sequence[Button]]:
        if last == 0:
            return []
        back, forward = max(0, page - 1), min(last, page + 1)
        here = self._made(f"{page + 1}/{last + 1}", SELECT, "page", str(page))
        return [[self._made("◀", SELECT, "page", str(back)), here, self._made("▶", SELECT, "page", str(forward))]]

    def time(self) -> Buttons:
        """Return the buttons for now and tomorrow morning."""
        now, tomorrow = self._button("button_now", TIME, "now"), self._button("button_tomorrow", TIME, "tomorrow")
        return [[now, tomorrow], *self.cancel()]

    def confirmation(self) -> Buttons:
        """Send or cancel."""
        return [[self._button("button_send", CONFIRM, "send"), *self.cancel()[0]]]

    def cancel(self) -> Buttons:
        """Return only Cancel, which ends the dialog at any step."""
        return [[self._button("button_cancel", "any", "cancel")]]

    def _button(self, name: str, step: str, action: str) -> Button:
        return self._made(text(name, self._locale), step, action)

    def _made(self, label: str, step: str, action: str, argument: str = "") -> Button:
        parts = ["s", self._state.dialog, step, action, *([argument] if argument else [])]
        return Button(label, self._sign(".".join(parts)))


def last_page(shown: Sequence[Choice]) -> int:
    """Return the number of the last page, from 0."""
    return max(0, -(-len(shown) // PAGE) - 1)
