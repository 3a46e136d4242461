"""Removes a message."""

from scenarios.schema import ActionType, Field, types

ACTION = ActionType(
    name="remove",
    help="Removes the message of the event, or another one.",
    fields=(Field("remove_message_id", types.WHOLE, "The message to remove, instead of that of the event."),),
)
