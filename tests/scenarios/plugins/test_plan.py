"""What needs each other starts in order; a missing need and a cycle are named, and the rest starts."""

from hypothesis import given
from hypothesis import strategies as st

from scenarios.plugins import plan


def test_each_starts_after_what_it_needs() -> None:
    found = plan({"bot": ["cache", "log"], "cache": ["store"], "store": [], "log": ["redis"]}, ["redis"], {})
    assert not found.off
    assert found.order.index("store") < found.order.index("cache") < found.order.index("bot")
    assert set(found.order) == {"bot", "cache", "store", "log"}


def test_a_missing_need_is_named_and_what_depends_on_it_is_off() -> None:
    found = plan({"a": ["b"], "b": ["nothing"], "c": []}, [], {})
    assert found.off == {"b": "it needs nothing, which is not there", "a": "it needs b, which is off"}
    assert found.order == ("c",)


def test_a_cycle_is_named_and_what_depends_on_it_is_off() -> None:
    found = plan({"a": ["b"], "b": ["a"], "c": ["a"], "d": []}, [], {})
    assert set(found.off) == {"a", "b", "c"}
    assert "a → b → a" in str(found.off["a"]) or "b → a → b" in str(found.off["a"])
    assert found.off["c"] == "it needs a, which is off"
    assert found.order == ("d",)


def test_what_needs_itself_is_off() -> None:
    assert "a → a" in str(plan({"a": ["a"]}, [], {}).off["a"])


names = st.sampled_from("abcdefg")


@given(st.dictionaries(names, st.sets(names)), st.sets(names))
def test_every_name_either_starts_after_its_needs_or_is_off_for_a_reason(
    needs: dict[str, set[str]], present: set[str]
) -> None:
    found = plan(needs, present, {})
    assert set(found.order) | found.off.keys() == needs.keys()
    assert not set(found.order) & found.off.keys()
    for n, name in enumerate(found.order):
        assert needs[name] <= {*present, *found.order[:n]}
