"""What people have written: escaped for the parse mode, never processed, and traced into the fields of later steps."""

import pytest

from scenarios.bot.data import Data
from scenarios.placeholders import HTML, MARKDOWN_V2, PLAIN, Escaping, Scope, render, render_all

PEOPLE = frozenset({"name", "info", "event_text"})
VALUES: dict[str, Data] = {
    "name": '<b>&"Вася"</b>', "info": {"text": "<i>"}, "event_text": "{token} <u>", "token": "secret",
    "title": "<b>Школа</b>", "n": -1.5,
}  # fmt: skip


def rendered(text: str, escaping: Escaping = HTML) -> str:
    return str(render(text, Scope(VALUES, PEOPLE, escaping)).value)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("{name}", "&lt;b&gt;&amp;&quot;Вася&quot;&lt;/b&gt;"),
        ("Я {info.text}", "Я &lt;i&gt;"),
        ("{info.text|upper}", "&lt;I&gt;"),
        ("{name|truncate:4}!", "&lt;...!"),
        ("{none|fallback:{info.text}}", "&lt;i&gt;"),
        ("{none|fallback:<b>{info.text}</b>}", "<b>&lt;i&gt;</b>"),
        ("{title|value:{info.text}}", "&lt;i&gt;"),
        ("{name|raw}", '<b>&"Вася"</b>'),
        ("{info.text|raw|upper} {info.text|upper|raw}", "<I> <I>"),
        ("{title} {none|fallback:<b>Гость</b>} {none|<}", "<b>Школа</b> <b>Гость</b> {none|<}"),
    ],
)
def test_in_html_a_persons_words_show_as_they_are_and_the_authors_markup_works(text: str, result: str) -> None:
    assert rendered(text) == result


def test_in_markdown_every_special_character_of_a_person_and_of_a_number_is_escaped() -> None:
    assert rendered("*{info.text}* {n} {unknown_1}", MARKDOWN_V2) == r"*<i\>* \-1\.5 \{unknown\_1\}"
    special = "_*[]()~`>#+-=|{}.!\\"
    scope = Scope({"name": special}, PEOPLE, MARKDOWN_V2)
    assert render("{name}", scope).value == "".join(f"\\{character}" for character in special)


@pytest.mark.parametrize(
    ("text", "escaping", "result"),
    [
        ("{info.text|code}", HTML, "<code>&lt;i&gt;</code>"),
        ("{info.text|upper|code|code}", HTML, "<code><code>&lt;I&gt;</code></code>"),
        ("{title|code} {empty|code}", HTML, "<code><b>Школа</b></code> <code></code>"),
        ("{rows|code}", HTML, "<code>a</code>\n<code>2</code>"),
        ("{rows|list|code}", HTML, "<code>• a\n• 2</code>"),
        ("{none|code}", HTML, "{none|code}"),
        ("{none|code|fallback:-}", HTML, "-"),
        ("{info.text|code} {n|code}", MARKDOWN_V2, r"`<i\>` `\-1\.5`"),
        ("{info.text|code}", PLAIN, "<i>"),
    ],
)
def test_code_is_marked_for_the_parse_mode_and_what_a_person_wrote_in_it_shows_as_it_is(
    text: str, escaping: Escaping, result: str
) -> None:
    scope = Scope(VALUES | {"rows": ["a", 2], "empty": ""}, PEOPLE, escaping)
    assert render(text, scope).value == result


def test_without_a_parse_mode_nothing_is_escaped() -> None:
    assert rendered("{name} {n}", PLAIN) == '<b>&"Вася"</b> -1.5'


def test_conditions_and_names_see_the_words_before_they_are_escaped() -> None:
    scope = Scope({"name": "<b>", "field_<b>": "found"}, PEOPLE, HTML)
    assert render(
        "{name|length}{name|equals:<b>|value:=}{field_{name}}{x|fallback:<b>|equals:{name}}", scope
    ).value == ("3=foundTrue")


@pytest.mark.parametrize(
    "text", ["{event_text}", "{x|fallback:{event_text}}", "{event_text|raw}", "{event_text|regex:.*}"]
)
def test_placeholders_that_a_person_writes_are_never_processed(text: str) -> None:
    assert rendered(text, PLAIN) == "{token} <u>"


def test_a_persons_words_are_traced_through_rendered_attributes() -> None:
    scope = Scope(VALUES | {"quote": "Он: {event_text}"}, PEOPLE)
    traced = [
        "{event_text}",
        "x {name|upper}",
        "{info.text|raw}",
        "{x|fallback:a {name}}",
        "{quote}",
        "{x|fallback:{name}}",
    ]
    own = ["{token}", "text", "{name|equals:a|value:b}", "{title|fallback:{name}}", "{n|+1}", "{unknown}"]
    assert [render(text, scope).from_person for text in (*traced, *own)] == [True] * 6 + [False] * 6
    assert render_all({"a": ["{token}", {"{name}": 1}]}, scope).from_person
    assert not render_all({"a": ["{token}"]}, scope).from_person
