"""The buttons that answer the question of a delivery, and their data: short, and signed for the account to which the
message goes.

    q<shard>.<code>.<number>.<parcel>.<contact>.<option>.<mark><signature>      at most 64 bytes, as Telegram allows

It begins with `a` in place of `q` if the question is anonymous: such a press is counted before it is stored anywhere.
The mark shows that this installation has made the token, the signature that it was made for this account: so a forged
token differs from one that another account presses. `AnswerTokens` signs also the links to the page of a recipient.

They stand below the buttons of the delivery itself. A channel that receives no presses, or whose keyboard has no room
for all of them, shows none: then the answer is among what is not shown.
"""

import hmac
import re
import string
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec.structs import replace

from core.errors import Forbidden
from core.model.content import Button, Content, Feature
from core.model.question import LinkPlace, Option, Pressed, Question
from core.redis.installation_secrets import InstallationSecret
from core.redis.store import Store

_PLACEHOLDER = "q" * 64
"""The data of a button before its token is made: as long as a token can be."""
_MOST_ALONE = 5
"""Options that have a row each; more stand in pairs."""
_CHOSEN = "✓ "

Rows = Sequence[Sequence[Button]]


def asking(
    content: Content | None,
    question: Question,
    shows: Collection[Feature],
    as_text: Callable[[Content], Collection[Feature]],
) -> Content | None:
    """Return the content with a button for each option, None if the channel cannot show them."""
    if Feature.ANSWER not in shows or not question.has_options:
        return None
    content = content or Content()
    asked = replace(content, inline=[*content.inline, *_rows(question, [_PLACEHOLDER] * len(question.options))])
    return None if Feature.INLINE in as_text(asked) else asked


def with_tokens(content: Content, question: Question, tokens: Sequence[str]) -> Content:
    """Return the content for one recipient. `content`: of `asking`. `tokens`: by option."""
    rows = _rows(question, tokens)
    return replace(content, inline=[*content.inline[: -len(rows)], *rows])


def as_reminder(content: Content | None) -> Content | None:
    """Return the content of a reminder: without the files, which may be gone, and without what changes earlier
    messages.
    """
    return Content(content.parse_mode, content.inline) if content else None


def answered_rows(content: Content | None, question: Question, tokens: Sequence[str], chosen: Collection[str]) -> Rows:
    """Return the buttons of a message whose question was answered: the keys `chosen` are marked."""
    own = content.inline if content else ()
    return [*own, *_rows(question, tokens, chosen)]


def counting_rows(
    content: Content | None, question: Question, tokens: Sequence[str], counts: Mapping[str, int]
) -> Rows:
    """Return the buttons of the message of a group chat: each has how many have chosen it. `counts`: by key."""
    own = content.inline if content else ()
    counted = [
        replace(one, text=f"{one.text} · {counts[one.key]}") if counts.get(one.key) else one for one in question.options
    ]
    return [*own, *_rows(replace(question, options=counted), tokens)]


def _rows(question: Question, tokens: Sequence[str], chosen: Collection[str] = ()) -> Rows:
    buttons = [Button(_label(one, chosen), data) for one, data in zip(question.options, tokens, strict=True)]
    width = 1 if len(buttons) <= _MOST_ALONE else 2
    return [buttons[start : start + width] for start in range(0, len(buttons), width)]


def _label(option: Option, chosen: Collection[str]) -> str:
    return f"{_CHOSEN}{option.text}" if option.key in chosen else option.text


TOKEN = re.compile(
    r"([qa](\d{1,5})\.([A-Za-z0-9_-]{11})\.(\d{1,5})\.(\d{1,5})\.(\d{1,2})\.(\d{1,2}))\.([\w-]{4})([\w-]{12})", re.ASCII
)
_ANONYMOUS = "a"
_MARK_BYTES, _SIGNATURE_BYTES = 3, 9

LINK_LENGTH = 45
"""Letters and digits of the token of a link: 264 bits, of which 128 are its signature."""
_LETTERS = string.digits + string.ascii_letters
_PLACE = struct.Struct(">H8sHHHB")
_LINK_BYTES = _PLACE.size + 16


def is_token(data: object) -> bool:
    return isinstance(data, str) and TOKEN.fullmatch(data) is not None


def is_anonymous_token(data: object) -> bool:
    return isinstance(data, str) and data.startswith(_ANONYMOUS) and is_token(data)


class AnswerTokens:
    """Signs and reads tokens with the secret of the installation."""

    def __init__(self, store: Store) -> None:
        self._secret = InstallationSecret(store, "answers")

    async def sign(self, tenant: str, channel: str, address: str, pressed: Pressed) -> str:
        """Return the data of a button. Raises StoreError."""
        secret = await self._secret.key()
        place = ".".join(map(str, (pressed.number, pressed.parcel, pressed.contact, pressed.option)))
        content = f"{_ANONYMOUS if pressed.is_anonymous else 'q'}{pressed.shard}.{pressed.code}.{place}"
        return f"{content}.{_mark(secret, content)}{_signature(secret, tenant, channel, address, content)}"

    async def of_options(self, tenant: str, channel: str, address: str, place: Pressed, options: int) -> Sequence[str]:
        """Return the data of the buttons of a question, one for each option. Raises StoreError."""
        account = (tenant, channel, address)
        return [await self.sign(*account, replace(place, option=option)) for option in range(options)]

    async def read(self, tenant: str, channel: str, address: str, data: str) -> Pressed:
        """Return what a token names. Raises Forbidden ANSWER_TOKEN_WRONG, ANSWER_NOT_YOURS; StoreError."""
        pressed, secret, found = await self.read_place(data), await self._secret.key(), TOKEN.fullmatch(data)
        if not found or not hmac.compare_digest(found[9], _signature(secret, tenant, channel, address, found[1])):
            raise Forbidden("ANSWER_NOT_YOURS", "This question was asked of another account.")
        return pressed

    async def read_place(self, data: str) -> Pressed:
        """Return what a token names, whatever account has it. Raises Forbidden ANSWER_TOKEN_WRONG; StoreError."""
        secret, found = await self._secret.key(), TOKEN.fullmatch(data)
        if found is None or not hmac.compare_digest(found[8], _mark(secret, found[1])):
            raise Forbidden("ANSWER_TOKEN_WRONG", "This button was not made here.")
        number, parcel, contact, option = (int(found[place]) for place in range(4, 8))
        is_anonymous = found[1].startswith(_ANONYMOUS)
        return Pressed(int(found[2]), found[3], number, parcel, contact, option, is_anonymous)

    async def sign_link(self, place: LinkPlace) -> str:
        """Return the token of a recipient's link. Raises StoreError."""
        secret = await self._secret.key()
        code = urlsafe_b64decode(f"{place.code}=")
        packed = _PLACE.pack(place.shard, code, place.number, place.channel, place.parcel, place.contact)
        return _as_letters(packed + _link_signature(secret, packed))

    async def read_link(self, token: str) -> LinkPlace:
        """Return what the token of a link names. Raises Forbidden ANSWER_TOKEN_WRONG; StoreError."""
        secret, packed = await self._secret.key(), _from_letters(token)
        place, signature = packed[: _PLACE.size], packed[_PLACE.size :]
        if not hmac.compare_digest(signature, _link_signature(secret, place)):
            raise Forbidden("ANSWER_TOKEN_WRONG", "This link was not made here.")
        shard, code, *numbers = _PLACE.unpack(place)
        return LinkPlace(shard, urlsafe_b64encode(code).decode().rstrip("="), *numbers)


def _as_letters(packed: bytes) -> str:
    number, letters = int.from_bytes(packed, "big"), ""
    for _ in range(LINK_LENGTH):
        number, digit = divmod(number, len(_LETTERS))
        letters = _LETTERS[digit] + letters
    return letters


def _from_letters(token: str) -> bytes:
    """Return the bytes of a token; for any other text, bytes without a valid signature."""
    number = 0
    if len(token) == LINK_LENGTH and set(token) <= set(_LETTERS):
        for letter in token:
            number = number * len(_LETTERS) + _LETTERS.index(letter)
    return number.to_bytes(_LINK_BYTES, "big") if number < 1 << 8 * _LINK_BYTES else bytes(_LINK_BYTES)


def _link_signature(secret: bytes, packed: bytes) -> bytes:
    return hmac.digest(secret, b"link\n" + packed, "sha256")[:16]


def _mark(secret: bytes, content: str) -> str:
    return _keyed(secret, f"mark\n{content}", _MARK_BYTES)


def _signature(secret: bytes, tenant: str, channel: str, address: str, content: str) -> str:
    return _keyed(secret, "\n".join((tenant, channel, address, content)), _SIGNATURE_BYTES)


def _keyed(secret: bytes, signed: str, size: int) -> str:
    digest = hmac.digest(secret, signed.encode(errors="surrogatepass"), "sha256")
    return urlsafe_b64encode(digest[:size]).decode().rstrip("=")
