"""Numbers of things in messages."""

from core.model.text.characters import counted


def test_one_thing_has_no_plural_and_every_other_number_has() -> None:
    assert [counted(n, "error") for n in (0, 1, 2, 21)] == ["0 errors", "1 error", "2 errors", "21 errors"]
    assert [counted(n, "delivery", "deliveries") for n in (1, 2)] == ["1 delivery", "2 deliveries"]
