"""What a person or group may be: each limit, and one more than it."""

from collections.abc import Iterator

import pytest

from core.errors import Invalid
from core.model.people import Group, User, fault_of_address, faults_of_email, faults_of_group, faults_of_user

CHANNELS = [f"c{n}" for n in range(33)]
LABEL = "d" * 63


def contacts_in(channels: list[str]) -> dict[str, list[str]]:
    return {channel: ["1"] for channel in channels}


def email(local: int, labels: int, last: int) -> str:
    """An address of `local` characters before the @, `labels` labels of 63, and one of `last`."""
    return f"{'a' * local}@{'.'.join([LABEL] * labels)}.{'e' * last}"


@pytest.mark.parametrize(
    ("at_the_limit", "beyond"),
    [
        (User("i" * 128), User("i" * 129)),
        (User(2**63 - 1), User(2**63)),
        (User(-(2**63)), User(-(2**63) - 1)),
        (User(1, name="n" * 256), User(1, name="n" * 257)),
        (User(1, contacts={"vk": ["1"] * 16}), User(1, contacts={"vk": ["1"] * 17})),
        (User(1, contacts=contacts_in(CHANNELS[:32])), User(1, contacts=contacts_in(CHANNELS))),
        (User(1, contacts={"c" * 64: ["1"]}), User(1, contacts={"c" * 65: ["1"]})),
        (User(1, contacts={"echo": ["1" * 256]}), User(1, contacts={"echo": ["1" * 257]})),
        (User(1, opt_out=["c" * 64]), User(1, opt_out=[""])),
    ],
    ids=["id", "number", "negative number", "name", "addresses", "channels", "channel", "address", "opt-out"],
)
def test_a_person_within_every_limit_is_accepted_and_beyond_one_refused(at_the_limit: User, beyond: User) -> None:
    assert codes(faults_of_user(at_the_limit)) == []
    assert codes(faults_of_user(beyond)) in (["TOO_LONG"], ["OUT_OF_RANGE"], ["UNKNOWN_CHANNEL"])


def test_a_title_has_at_most_256_characters_and_an_address_at_least_one() -> None:
    assert codes(faults_of_group(Group("g", "t" * 256))) == []
    assert codes(faults_of_group(Group("g", "t" * 257))) == ["TOO_LONG"]
    assert fault_of_address("echo", "1") is None
    fault = fault_of_address("echo", "")
    assert fault
    assert fault.code == "TOO_SHORT"


@pytest.mark.parametrize(
    ("at_the_limit", "beyond"),
    [
        (email(64, 1, 2), email(65, 1, 2)),
        (email(58, 3, 3), email(59, 3, 3)),
        (email(1, 1, 63), email(1, 1, 64)),
    ],
    ids=["local part", "whole", "label"],
)
def test_an_email_has_at_most_254_characters_64_of_them_before_the_at(at_the_limit: str, beyond: str) -> None:
    assert codes(faults_of_email(at_the_limit)) == []
    assert codes(faults_of_email(beyond)) == ["EMAIL_MALFORMED"]


def codes(faults: Iterator[Invalid]) -> list[str]:
    return [fault.code for fault in faults]
