"""Own fields: the form in which a value is stored, and which people a condition selects. Pure."""

import pytest

from core.errors import Invalid
from core.model.own_fields import FieldType, OwnField, read_condition, typed

FIELDS = {
    "mark": OwnField("mark", FieldType.NUMBER),
    "born": OwnField("born", FieldType.DATE),
    "form": OwnField("form", FieldType.CHOICE, ("Full time", "Part time")),
}


@pytest.mark.parametrize(
    ("field", "written", "stored"),
    [
        ("mark", " 4,50 ", "4.5"),
        ("mark", "1 000", "1000"),
        ("mark", "−0", "0"),
        ("mark", "100", "100"),
        ("born", "1.9.2010", "2010-09-01"),
        ("born", "2010-9-1", "2010-09-01"),
        ("form", "part TIME", "Part time"),
    ],
)
def test_a_value_is_stored_in_the_form_of_its_type(field: str, written: str, stored: str) -> None:
    assert typed(FIELDS[field], written) == stored


@pytest.mark.parametrize(
    ("field", "written"), [("mark", "four"), ("mark", "1.2.3"), ("born", "2010-02-30"), ("born", "soon"), ("form", "x")]
)
def test_a_value_of_another_type_is_refused(field: str, written: str) -> None:
    with pytest.raises(Invalid):
        typed(FIELDS[field], written)


@pytest.mark.parametrize(
    ("condition", "met", "unmet"),
    [
        ("mark=4,5", ["4.5"], ["4.4", ""]),
        ("mark>=4", ["4", "10"], ["3.9", "", "good"]),
        ("mark>4", ["10"], ["4", ""]),
        ("mark<=4", ["4", "-1"], ["10", ""]),
        ("mark<4", ["3"], ["4", ""]),
        ("born<1.9.2010", ["2010-08-31"], ["2010-09-01", "", "soon"]),
        ("form=full time", ["Full time"], ["Part time", ""]),
        ("form=", [""], ["Full time"]),
        ("room=7", ["7"], ["07", ""]),
        ("mark=", [""], ["4"]),
    ],
)
def test_a_condition_is_met_by_these_values_and_not_by_those(condition: str, met: list[str], unmet: list[str]) -> None:
    """A person without a value, or with one of before the field had its type, meets no condition with an order."""
    found = read_condition(FIELDS, condition, "where")
    values = {value: found.is_met({found.field.name: value} if value else {}) for value in (*met, *unmet)}
    assert values == {value: value in met for value in (*met, *unmet)}


@pytest.mark.parametrize("condition", ["mark", "=4", "room>7", "form>x", "mark>", "mark>soon"])
def test_a_condition_that_says_nothing_is_refused(condition: str) -> None:
    with pytest.raises(Invalid):
        read_condition(FIELDS, condition, "where")
