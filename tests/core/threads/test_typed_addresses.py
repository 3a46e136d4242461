"""Addresses in what people write: which texts have one, and which only look so."""

import pytest

from core.answers.values import meaning
from core.threads.mail_reading import new_words
from core.threads.typed_addresses import typed_addresses


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("пишите на ivan.petrov+1@mail.example.ru, жду", ["ivan.petrov+1@mail.example.ru"]),
        ("мой ник @maria_p", ["@maria_p"]),
        ("звоните: +7 (912) 345-67-89.", ["+7 (912) 345-67-89"]),
        ("89123456789 или 8 912 345 67 89", ["89123456789", "8 912 345 67 89"]),
        ("912 345-67-89", ["912 345-67-89"]),
        ("(495) 123-45-67, добавочный 12", ["(495) 123-45-67"]),
        ("тел. 223-45-67", ["223-45-67"]),
        ("call +44 20 7946 0958", ["+44 20 7946 0958"]),
        ("https://t.me/maria и vk.com/id123", ["t.me/maria", "vk.com/id123"]),
        ("[id77|Маша], привет", ["[id77|Маша]"]),
        ("tg://user?id=5", ["tg://user?id=5"]),
        ("a@b.ru a@b.ru", ["a@b.ru"]),
        ("+7.912.345.67.89 или +7 912 345–67–89", ["+7.912.345.67.89", "+7 912 345–67–89"]),
        ("8 912 345–67–89", ["8 912 345–67–89"]),
        ("https://www.instagram.com/masha", ["www.instagram.com/masha"]),
        ("https://m.vk.com/masha, facebook.com/masha", ["m.vk.com/masha", "facebook.com/masha"]),
        ("skype:masha.iv?chat, telegram.dog/masha", ["skype:masha.iv", "telegram.dog/masha"]),
    ],
)
def test_an_address_is_found(text: str, found: list[str]) -> None:
    assert typed_addresses(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "2026-12-01 18:00, ауд. 305",
        "в 10:30-12:00 или 14.12.2026",
        "ISBN 978-5-17-118366-1",
        "зачётка 1234567",
        "задание 3 @ стр. 5",
        "https://example.org/lesson?id=89123456789012",
        "счёт 40817810099910004312",
        "1000000 рублей, 12-15 человек",
        "",
    ],
)
def test_what_is_no_address_is_left_alone(text: str) -> None:
    assert typed_addresses(text) == []


@pytest.mark.parametrize("text", ["1" * 120_000, "[id1|" * 24_000, "a" + " " * 120_000 + "a", "пн " + "0:00 " * 24_000])
def test_a_long_text_is_read_once(text: str) -> None:
    """Read again from each of its characters it would take minutes, in which its process does nothing else."""
    assert typed_addresses(text) == []
    assert meaning(text, []) is None
    assert len(new_words(text)) <= len(text)
