"""Asks a language model (C-78)."""

from core.errors import Invalid
from core.model.content import ParseMode
from core.model.text.markdown import read_markdown
from core.model.text.text_entities import marked
from providers.models import Prompt
from scenarios.context import Context
from scenarios.context.arguments import Seen, count_of, duration_of, number_of, text_of
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.schema import ActionType, Field, types


async def execute(context: Context) -> Ending:
    """Complete a prompt. The answer depends on what a person wrote, so later actions escape it as if a person had
    written it.

    Raises Invalid, AiError.
    """
    seen = context.prepared.seen
    answer = await context.services.models.complete(_prompt(seen), duration_of(seen, "cache_max_age"))
    text, entities = read_markdown(answer.text)
    texts = {
        "response_text": answer.text,
        "response_text_html": marked(text, entities, ParseMode.HTML),
        "response_text_md2": marked(text, entities, ParseMode.MARKDOWN_V2),
    }
    results = {**texts, "model_used": answer.model, "tokens_used": answer.tokens}
    return completed(results, from_person=texts)


def _prompt(seen: Seen) -> Prompt:
    user = text_of(seen, "user_message")
    if not user:
        raise Invalid("TEXT_EMPTY", "user_message is empty", "user_message")
    return Prompt(
        user=user,
        system=text_of(seen, "system_prompt"),
        model=text_of(seen, "model"),
        temperature=number_of(seen, "temperature"),
        max_tokens=count_of(seen, "max_tokens"),
    )


ACTION = ActionType(
    name="completion",
    help="Asks a language model.",
    fields=(
        Field("system_prompt", types.TEXT, "Instructions for the model."),
        Field("user_message", types.TEXT, "The question."),
        Field("model", types.TEXT, "The name of the model."),
        Field("temperature", types.NUMBER, "How much answers vary."),
        Field("max_tokens", types.WHOLE, "How long the answer may be."),
        Field("cache_max_age", types.DURATION, "How old an answer to the same may be; `0s`: always a new one."),
    ),
    returns={
        "response_text": "the answer, in Markdown as models write it",
        "response_text_html": "the same for a text in HTML",
        "response_text_md2": "the same for a text with `parse_mode: MarkdownV2`",
        "model_used": "the name of the model",
        "tokens_used": "how many tokens it took",
    },
    execute=execute,
    tube="scenarios.models",
)
