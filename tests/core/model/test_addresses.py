"""What is an address of a channel, and what only looks like one: spreadsheets, typing mistakes, two in one."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.contacts.addresses import ascii_email, canonical, e164, is_phone_number, malformed
from core.model.people import (
    Group,
    User,
    canonical_group,
    canonical_user,
    faults_of_group,
    faults_of_user,
    unknown_channel,
)
from core.model.text.characters import refusal, with_plain_spaces
from core.model.user_files import safe_name
from tests.support.paths import ROOT

RIGHT = {
    "sms": [
        "+79991112233",
        "8 (999) 111-22-33",
        "9991112233",
        "+49 170 1234567",
        "0049 170 1234567",
        "+358 40 1234567",
    ],
    "telegram": ["100001", "-1001234567890", "@anna", "@Anna_2", "+79991112233"],
    "telegram-bot": ["100001", "-1001234567890", "@group"],
    "vk": ["200001", "-15", "2000000001"],
    "email": ["anna@example.org", "Anna+b@Example.org", "анна@почта.рф"],
    "echo": ["anything", "7,9991E+10"],
}
WRONG = {
    "sms": [
        *("7,9991E+10", "7.9991E+10", "79991112208.0", "123", "abc", "+7999", "112", "+79991112233x", "٧٩٩٩١١١٢٢٣٣"),
        *(
            "+79991112233 +79991112244",
            "89991112233,89991112244",
            "89991112233; 89991112244",
            "89991112233 89991112244",
        ),
    ],
    "telegram": ["anna", "100001.0", "1,00001E+05", "0", "007", "@", "@1anna", "@an na", "+123", "100001 100002"],
    "telegram-bot": ["anna", "100001.0", "+79991112233", "0"],
    "vk": ["@anna", "id200001", "200001.0", "0", "vk.com/anna"],
    "email": ["nonsense", "anna@", "@example.org", "a@b.org, c@d.org", "a b@example.org", "anna@exa mple.org"],
}


@pytest.mark.parametrize(("channel", "address"), [(channel, one) for channel, some in RIGHT.items() for one in some])
def test_each_written_form_of_an_address_is_accepted(channel: str, address: str) -> None:
    assert malformed(channel, address) == ""


@pytest.mark.parametrize(("channel", "address"), [(channel, one) for channel, some in WRONG.items() for one in some])
def test_what_only_looks_like_an_address_is_refused_with_an_example(channel: str, address: str) -> None:
    assert malformed(channel, address).startswith(f"An address of {channel} is ")


@pytest.mark.parametrize(
    ("channel", "written", "canonical_form"),
    [
        ("sms", "8\u00a0(999)\u00a0111\u201122\u221233", "+79991112233"),
        *(
            ("sms", f"{mark}+79991112233{mark}", "+79991112233")
            for mark in "\u00a0\u200b\u200e\u202d\u2068\ufeff\ufe0d"
        ),
        *((channel, "\u202a200001\u202c", "200001") for channel in ("telegram", "telegram-bot", "vk", "max")),
        ("email", "\ufeffanna@example.org\u00a0", "anna@example.org"),
        ("email", "a@и\u0306од.рф", "a@йод.рф"),
        ("email", "A@xn--D1AJP.xn--p1ai", "a@йод.рф"),
        ("email", "a@xn--fa-hia.de", "a@faß.de"),
        ("email", "a@xn--zzzzzzz9.org", "a@xn--zzzzzzz9.org"),
    ],
)
def test_invisible_marks_round_an_address_are_removed(channel: str, written: str, canonical_form: str) -> None:
    assert (malformed(channel, written), canonical(channel, written)) == ("", canonical_form)


@pytest.mark.parametrize(
    ("written", "ascii_form"),
    [
        ("a@faß.de", "a@xn--fa-hia.de"),
        ("a@σωλις.ευ", "a@xn--uxadwb4a.xn--qxa6a"),
        ("a@и\u0306од.рф", "a@xn--d1ajp.xn--p1ai"),
    ],
)
def test_domains_of_mail_are_those_of_idna_2008(written: str, ascii_form: str) -> None:
    """`a@faß.de` was mailed to a stranger's domain, fass.de."""
    assert ascii_email(written) == ascii_form


@pytest.mark.parametrize("written", ["80291234567", "+70291234567", "+7 017 123-45-67", "71234567890"])
def test_no_number_begins_with_7_and_0_to_2(written: str) -> None:
    assert (e164(written), is_phone_number(written)) == (None, False)


@pytest.mark.parametrize(
    ("given_name", "kept"),
    [
        ("Приложение 1 к приказу о зачислении студентов первого курса заочной формы.docx",) * 2,
        ("ж" * 200 + ".docx", "ж" * 116 + "….docx"),
        ("ж" * 119 + "." + "я" * 30, "ж" * 118 + "…"),
        ('a"b/c\\d.pdf', "a_b_c_d.pdf"),
        ("a.pdf  ", "a.pdf"),
        ("И\u0306од-2.pdf", "Йод-2.pdf"),
    ],
)
def test_a_file_keeps_its_name_or_the_beginning_and_the_ending_of_it(given_name: str, kept: str) -> None:
    assert safe_name(given_name) == kept
    assert len(kept.encode()) <= 240


numbers = st.from_regex(r"(\+|00|)[0-9]{1,15}", fullmatch=True) | st.from_regex(
    r"\+(1|44|49|52|55|39|7|998|375)[0-9]{4,11}", fullmatch=True
)


@given(numbers)
def test_the_quick_check_agrees_with_the_conversion_to_e164(written: str) -> None:
    assert is_phone_number(written) == (e164(written) is not None)


# names


@pytest.mark.parametrize(
    "name", ["Анна Каренина", "👩‍🎓 группа", "🏴󠁧󠁢󠁥󠁮󠁧󠁿 English", "می‌خواهم", "Группа\u00a021", "a\u2009b\u3000c"]
)
def test_a_name_may_have_emoji_of_several_characters_and_spaces_of_any_kind(name: str) -> None:
    assert list(faults_of_user(User(1, name))) == []
    assert list(faults_of_group(Group(1, name))) == []
    plain = name.replace("\u00a0", " ").replace("\u2009", " ").replace("\u3000", " ")
    assert canonical_user(User(1, name)).name == canonical_group(Group(1, name)).title == plain


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("Анна\u202e", "character 5 is U+202E RIGHT-TO-LEFT OVERRIDE"),
        ("a\nb", "character 2 is U+000A"),
        ("\u200bАнна", "character 1 is U+200B ZERO WIDTH SPACE"),
        ("a\u2028b", "character 2 is U+2028 LINE SEPARATOR"),
        ("a\ue000", "character 2 is U+E000"),
    ],
)
def test_a_refused_character_is_named_with_its_place(name: str, named: str) -> None:
    (fault,) = faults_of_user(User(1, name))
    assert (fault.code, fault.path) == ("NOT_PRINTABLE", "name")
    assert fault.detail == f"Only printable characters are allowed; {named}."


def test_ids_are_not_changed_so_they_have_no_joiners_and_only_plain_spaces() -> None:
    for wrong in ("ИВТ\u00a021", "a\u200db"):
        (fault,) = faults_of_user(User(wrong))
        assert (fault.code, fault.path) == ("NOT_PRINTABLE", "id")


@given(st.text())
def test_plain_spaces_replace_only_spaces_and_keep_line_breaks(text: str) -> None:
    changed = with_plain_spaces(text)
    assert len(changed) == len(text)
    assert all(old == new or (old.isspace() and new == " ") for old, new in zip(text, changed, strict=True))
    assert [one for one in changed if one in "\n\r\t\v\f\x85\u2028\u2029"] == [
        one for one in text if one in "\n\r\t\v\f\x85\u2028\u2029"
    ]
    assert bool(refusal(changed)) == (not changed.isprintable())


def test_the_forms_are_those_of_the_records_in_a_process_that_has_read_no_registry() -> None:
    code = "from core.model.contacts.addresses import malformed; print(malformed('vk', 'anna'))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert ran.stdout == "An address of vk is a peer id, such as 200001.\n", ran.stderr


def test_a_channel_whose_courier_has_not_started_is_not_called_unknown() -> None:
    """With a wrong token from the beginning, `max` was "unknown", though its settings were there."""
    max_, pigeon = (str(unknown_channel(name, "", ["sms", "vk"])) for name in ("max", "pigeon"))
    assert max_ == "No courier of the channel 'max' has started here yet: ./ada doctor says why. There are sms, vk."
    assert pigeon == "The channel 'pigeon' is unknown. There are sms, vk."
