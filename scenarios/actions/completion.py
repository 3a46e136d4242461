"""Asks a language model (C-78)."""

from scenarios.schema import ActionType, Field, types

ACTION = ActionType(
    name="completion",
    help="Asks a language model.",
    fields=(
        Field("system_prompt", types.TEXT, "Instructions for the model."),
        Field("user_message", types.TEXT, "The question."),
        Field("model", types.TEXT, "The name of the model."),
        Field("temperature", types.NUMBER, "How much answers vary."),
        Field("max_tokens", types.WHOLE, "How long the answer may be."),
    ),
    returns={
        "response_text": "the answer",
        "model_used": "the name of the model",
        "tokens_used": "how many tokens it took",
    },
)
