"""Asks a language model (C-78); `gigachat` is its name in Coreness."""

from typing import Annotated

from msgspec.structs import replace

from core.errors import Invalid
from core.model.content import ParseMode
from core.model.text.markdown import read_markdown
from core.model.text.text_entities import marked
from providers.models import Prompt
from scenarios.context import Context
from scenarios.engine import Ending, completed
from scenarios.schema import ActionType, Attributes, Seen
from scenarios.schema.attributes import Count, Duration, Number, Text
from scenarios.words import sentence

_TEXTS = ("response_text", "response_text_html", "response_text_md2")


class CompletionAttributes(Attributes, frozen=True):
    system_prompt: Annotated[Text, Seen("Instructions for the model.", may_be_empty=True)] = ""
    user_message: Annotated[Text, Seen("The question.")] = ""
    model: Annotated[Text, Seen("The name of the model.")] = ""
    temperature: Annotated[Number, Seen("How much answers vary.")] = None
    max_tokens: Annotated[Count, Seen("How long the answer may be.")] = None
    cache_max_age: Annotated[Duration, Seen("How old an answer to the same may be; `0s`: always a new one.")] = None


async def execute_completion(context: Context, written: CompletionAttributes) -> Ending:
    """Complete a prompt. The answer depends on what a person wrote, so later actions escape it as if a person had
    written it.

    Raises Invalid, AiError.
    """
    if not written.user_message:
        raise Invalid("TEXT_EMPTY", sentence("user_message_empty"), "user_message")
    prompt = Prompt(
        user=written.user_message,
        system=written.system_prompt,
        model=written.model,
        temperature=written.temperature,
        max_tokens=written.max_tokens,
    )
    answer = await context.services.models.complete(prompt, written.cache_max_age)
    text, entities = read_markdown(answer.text)
    marks = (marked(text, entities, mode) for mode in (ParseMode.HTML, ParseMode.MARKDOWN_V2))
    texts = dict(zip(_TEXTS, (answer.text, *marks), strict=True))
    return completed({**texts, "model_used": answer.model, "tokens_used": answer.tokens}, from_person=_TEXTS)


COMPLETION = ActionType(
    name="completion",
    help="Asks a language model.",
    attributes=CompletionAttributes,
    returns={
        "response_text": "the answer, in Markdown as models write it",
        "response_text_html": "the same for a text in HTML",
        "response_text_md2": "the same for a text with `parse_mode: MarkdownV2`",
        "model_used": "the name of the model",
        "tokens_used": "how many tokens it took",
    },
    execute=execute_completion,
    samples={"tokens_used": 0},
    from_person=_TEXTS,
    tube="scenarios.models",
)

GIGACHAT = replace(
    COMPLETION,
    name="gigachat",
    alias_of="completion",
    help="The same as `completion`: it asks the model of ADA_MODEL_…, which may be GigaChat or another one.",
)
