"""The bot: what its methods and the people who use it share."""

import time
from collections import OrderedDict
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

from sandbox.bot_api.state.chats import Chat, Chats, People
from sandbox.bot_api.state.errors import QUERY_TOO_OLD, bad_request
from sandbox.bot_api.state.parameters import Upload
from sandbox.bot_api.state.updates import Updates, Webhook, WebhookSender
from sandbox.rate_limit import RateLimit
from sandbox.state import SandboxState

CHANNEL = "telegram-bot"
KEPT_QUERIES = 10_000
KEPT_FILES = 1_000


@dataclass(slots=True)
class CallbackQuery:
    """A button that was pressed. `answer`: the parameters of answerCallbackQuery, None before it."""

    id: str
    user: int
    at: float
    answer: dict[str, Any] | None = None


@dataclass(slots=True)
class Bot:
    """One bot. `query_lifetime`: seconds in which a callback query can be answered."""

    state: SandboxState
    token: str
    query_lifetime: float
    updates: Updates
    webhook_sender: WebhookSender
    webhook: Webhook | None = None
    people: People = field(default_factory=People)
    rate_limit: RateLimit = field(default_factory=RateLimit)
    commands: dict[str, list[Any]] = field(default_factory=dict)  # by scope and language
    files: OrderedDict[str, Upload] = field(default_factory=OrderedDict)  # by file_id
    queries: OrderedDict[str, CallbackQuery] = field(default_factory=OrderedDict)
    chats: Chats = field(init=False)

    def __post_init__(self) -> None:
        self.chats = Chats(self.people)

    @property
    def id(self) -> int:
        return int(self.token.partition(":")[0])

    def user(self) -> dict[str, Any]:
        """Return the object User of the bot."""
        return {"id": self.id, "is_bot": True, "first_name": "Sandbox", "username": f"sandbox{self.id}_bot"}

    def send(self, chat: Chat, content: dict[str, Any], shown: str) -> dict[str, Any]:
        """Store a message of the bot and put it into the inbox with the text `shown`."""
        message = chat.add(self.user(), content)
        self.state.receive(CHANNEL, str(chat.id), shown, reference=str(message["message_id"]))
        return message

    def store_file(self, upload: Upload) -> str:
        """Keep a file and return its file_id. At capacity the oldest one is dropped."""
        file_id = f"BQACAgIAAxk{token_hex(24)}"
        self.files[file_id] = upload
        if len(self.files) > KEPT_FILES:
            self.files.popitem(last=False)
        return file_id

    def new_query(self, user: int) -> CallbackQuery:
        query = CallbackQuery(str(int(token_hex(7), 16)), user, time.monotonic())
        self.queries[query.id] = query
        if len(self.queries) > KEPT_QUERIES:
            self.queries.popitem(last=False)
        return query

    def open_query(self, query_id: str) -> CallbackQuery:
        """Return a query that can be answered. Raises ApiError if it is too old, unknown or answered."""
        query = self.queries.get(query_id)
        if query is None or query.answer is not None or time.monotonic() - query.at > self.query_lifetime:
            raise bad_request(QUERY_TOO_OLD)
        return query
