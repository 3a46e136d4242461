"""Checks reply_markup and returns it in the form in which it is stored and shown.

Source: core.telegram.org/bots/api#inlinekeyboardmarkup, #replykeyboardmarkup, #forcereply.
"""

from typing import Any

from sandbox.bot_api.state.errors import ApiError, bad_request
from sandbox.bot_api.state.parameters import Parameters

MAX_DATA = 64  # bytes of callback_data
MAX_BUTTONS = 100
_ACTIONS = (
    "url", "callback_data", "web_app", "login_url", "switch_inline_query", "switch_inline_query_current_chat",
    "switch_inline_query_chosen_chat", "copy_text", "pay",
)  # fmt: skip
_KINDS = ("inline_keyboard", "keyboard", "remove_keyboard", "force_reply")

Markup = dict[str, Any]


def read_markup(parameters: Parameters) -> Markup | None:
    """Return the keyboard of a new message, None if there is none. Raises ApiError."""
    markup = parameters.json("reply_markup")
    if markup is None or markup == {}:
        return None
    kind = next((kind for kind in _KINDS if isinstance(markup, dict) and kind in markup), "")
    if not kind:
        raise bad_request("object expected as reply markup")
    if kind == "inline_keyboard":
        return {"inline_keyboard": _checked_rows(markup[kind], inline=True)}
    if kind == "keyboard":
        return {**markup, "keyboard": _checked_rows(markup[kind], inline=False)}
    return dict(markup)


def read_inline_keyboard(parameters: Parameters) -> Markup | None:
    """Return the inline keyboard of an edited message, None if it has none or an empty one. Raises ApiError."""
    markup = read_markup(parameters)
    if markup is not None and "inline_keyboard" not in markup:
        raise bad_request("inline keyboard expected")
    return markup if markup is not None and any(markup["inline_keyboard"]) else None


def _checked_rows(rows: Any, *, inline: bool) -> list[list[Markup]]:
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise bad_request("can't parse reply keyboard markup JSON object")
    checked = [[_checked_button(button, inline=inline) for button in row] for row in rows if row]
    if sum(len(row) for row in checked) > MAX_BUTTONS:
        raise bad_request("REPLY_MARKUP_TOO_LONG")
    return checked


def _checked_button(button: Any, *, inline: bool) -> Markup:
    fields = {"text": button} if isinstance(button, str) and not inline else button
    if not isinstance(fields, dict) or not isinstance(fields.get("text"), str) or not fields["text"]:
        raise bad_request('can\'t parse keyboard button: Field "text" must be of type String')
    if inline:
        _check_action(fields)
    return dict(fields)


def _check_action(button: Markup) -> None:
    actions = [name for name in _ACTIONS if button.get(name) not in (None, False)]
    if len(actions) != 1:
        raise bad_request("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
    data = button.get("callback_data")
    if data is not None and not (isinstance(data, str) and 0 < len(data.encode()) <= MAX_DATA):
        raise _invalid_data()


def _invalid_data() -> ApiError:
    return bad_request("BUTTON_DATA_INVALID")
