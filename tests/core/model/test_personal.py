"""Marks of personal texts: what is one, what is filled in, and how a value is written."""

import pytest

from core.errors import Invalid
from core.model.content import Button, Content, ParseMode
from core.model.text.personal import PersonalTemplate
from core.model.text.text_marks import broken_mark, plain_text

HTML, MARKDOWN = ParseMode.HTML, ParseMode.MARKDOWN_V2
NASTY = "<b>*_`[x](y)\\{{name}} & Co. #1!"


@pytest.mark.parametrize(
    ("written", "filled"),
    [
        ("Hello {{name}}!", "Hello Anna!"),
        ("{{ NAME }}{{Name}}", "AnnaAnna"),
        ("{{Учёба}}", "да"),
        ("{{none|friend}}, {{name|friend}}", "friend, Anna"),
        ("[{{none|}}]", "[]"),
        (r"\{{name}} is {{name}}", "{{name}} is Anna"),
        ("{name} } }} {", "{name} } }} {"),
        ("{{mark}}", "{{name}}"),
    ],
)
def test_a_mark_is_filled_once(written: str, filled: str) -> None:
    values = {"name": "Anna", "учеба": "да", "mark": "{{name}}"}
    assert PersonalTemplate(written, None).text(values) == filled


@pytest.mark.parametrize(
    "written", ["{{", "a {{name", "{{}}", "{{ }}", "{{{name}}}", "{{a{b}}", "{{" + "n" * 65 + "}}"]
)
def test_braces_that_name_no_field_are_refused_with_their_place(written: str) -> None:
    with pytest.raises(Invalid, match=f"Character {written.index('{{') + 1},") as refusal:
        PersonalTemplate(written, None)
    assert refusal.value.code == "FIELD_MALFORMED"


@pytest.mark.parametrize(
    ("mode", "around"),
    [
        (HTML, "VALUE"),
        (HTML, "<b>VALUE</b>"),
        (HTML, "<code>VALUE</code>"),
        (MARKDOWN, "*VALUE*"),
        (MARKDOWN, "`VALUE`"),
    ],
)
def test_a_value_never_becomes_a_mark(mode: ParseMode, around: str) -> None:
    text = PersonalTemplate(around.replace("VALUE", "{{value}}"), Content(mode)).text({"value": NASTY})
    assert plain_text(text, mode) == NASTY
    assert broken_mark(text, mode) is None


def test_markdown_has_its_own_backslashes() -> None:
    template = PersonalTemplate(r"\{\{name\}\} \\{{first\_name}}", Content(MARKDOWN))
    assert template.fields == ["first_name"]
    assert plain_text(template.text({"first_name": "A."}), MARKDOWN) == r"{{name}} \A."


def test_buttons_are_filled_and_addresses_are_quoted() -> None:
    content = Content(inline=[[Button("Of {{name}}", "{{name}}"), Button("Site", url="https://e.org/{{name}}?a=1")]])
    filled = PersonalTemplate("text", content).content({"name": "A/B & C"})
    assert filled
    assert filled.inline == [[Button("Of A/B & C", "A/B & C"), Button("Site", url="https://e.org/A%2FB%20%26%20C?a=1")]]
    assert PersonalTemplate("{{name}}", Content(reply=[["Yes"]])).content({}) == Content(reply=[["Yes"]])
