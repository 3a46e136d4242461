"""The question of a delivery: the tokens of its buttons, and what its recipients answer.

    a button's token ─▶ Answers.press ─▶ lua/answers/functions/answer.lua, one step in the shard of the delivery

Guarantees: an answer counts once for its person (I26), however often its event is handled; a token counts only for the
account to which its message was sent; a reminder never goes to who has answered (I27);
no option has more people than places (I28); nothing joins a person and its answer to an anonymous question (I30).

Neighbours: `core.deliveries` below. `couriers.sending` signs the buttons, `core.updates` recognises presses.
"""

from core.answers.answers import NUMBER, PRESS, TEXT, AnsweredMessage, Answers
from core.answers.buttons import AnswerTokens, is_anonymous_token, is_token
from core.answers.links import LINK, AnswerLinks
from core.answers.numbers import AnswerNumbers
from core.answers.open_questions import OpenQuestions

__all__ = [
    "LINK",
    "NUMBER",
    "PRESS",
    "TEXT",
    "AnswerLinks",
    "AnswerNumbers",
    "AnswerTokens",
    "AnsweredMessage",
    "Answers",
    "OpenQuestions",
    "is_anonymous_token",
    "is_token",
]
