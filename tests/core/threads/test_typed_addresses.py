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
        ("masha (at) home", ["masha (at) home"]),
        ("masha[собака]mail.ru, пишите", ["masha[собака]mail.ru"]),
        ("masha собака mail точка ru", ["masha собака mail точка ru"]),
        ("маша собачка мейл точка ру", ["маша собачка мейл точка ру"]),
        ("masha собака mail.ru", ["masha собака mail.ru"]),
        ("write to masha at mail dot com", ["masha at mail dot com"]),
        ("masha @ mail.ru или masha@ mail.ru", ["masha @ mail.ru", "masha@ mail.ru"]),
        ("ｍａｓｈａ＠ｍａｉｌ．ｒｕ", ["masha@mail.ru"]),
        ("＋７９１２３４５６７８９, ８９１２３４５６７８９", ["+79123456789", "89123456789"]),
        ("٨٩١٢٣٤٥٦٧٨٩", ["89123456789"]),
        ("8\u200b912\u200b345\u200b67\u200b89", ["89123456789"]),
        ("8️⃣9️⃣1️⃣2️⃣3️⃣4️⃣5️⃣6️⃣7️⃣8️⃣9️⃣", ["89123456789"]),
        ("8.912.345.67.89 или 8_912_345_67_89", ["8.912.345.67.89", "8_912_345_67_89"]),
        ("тг: masha_p, вк: id12345", ["тг: masha_p", "вк: id12345"]),
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
        "моя собака съела тетрадь. Точка.",
        "У Маши собака, а у нас кот. Точка зрения другая",
        "собака точка ру",
        "look at example.com, at ten dot",
        "Встреча (at school) в 10.00",
        "We meet at noon at the dot com cafe",
        "10 шт @ 5.50, задание (a) и (b)",
        "Telegram: Maria answered, VK: новости",
        "telegram: https://school.example",
        "7.12.2026 18.00, ауд. 305",
        "ответ: 8.912 и 9.345.67",
        "x² + y² = 25, № 5, ５ классов",
        "смотри… завтра в 8…9",
        "",
    ],
)
def test_what_is_no_address_is_left_alone(text: str) -> None:
    assert typed_addresses(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "1" * 120_000,
        "[id1|" * 24_000,
        "a" + " " * 120_000 + "a",
        "пн " + "0:00 " * 24_000,
        "a at " * 30_000,
        "８" * 120_000,
        "tg:" * 40_000,
    ],
)
def test_a_long_text_is_read_once(text: str) -> None:
    """Read again from each of its characters it would take minutes, in which its process does nothing else."""
    assert typed_addresses(text) == []
    assert meaning(text, []) is None
    assert len(new_words(text)) <= len(text)
