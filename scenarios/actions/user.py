"""Sets or clears the state of a person (C-67)."""

from scenarios.schema import ActionType, Field, types

ACTION = ActionType(
    name="user",
    help="Sets the state of the person, which the triggers of the kind `state` compare with.",
    fields=(
        Field("user_state", types.TEXT, 'The name of the state; `""` clears it.'),
        Field("expire", types.DURATION, "How long the state lasts.", default="600s"),
    ),
)
