"""`gigachat`: another name of `completion` (C-78)."""

from msgspec.structs import replace

from scenarios.actions.speech import completion

ACTION = replace(
    completion.ACTION,
    name="gigachat",
    alias_of="completion",
    help="The same as `completion`: it asks the model of ADA_MODEL_…, which may be GigaChat or another one.",
)
