"""Mutes and unmutes a member of a group (C-71)."""

from scenarios.schema import ActionType, Field, types

ACTION = ActionType(
    name="restrict",
    help="Forbids or allows a member of the group to write.",
    fields=(
        Field("can_send_messages", types.FLAG, "Whether the person may write."),
        Field("duration", types.DURATION, "How long it lasts."),
        Field("duration_seconds", types.WHOLE, "The same in seconds."),
        Field("restrict_user_id", types.WHOLE, "The person's id. Without it: `restrict_username`."),
        Field("restrict_username", types.TEXT, "The person's @name. Without it: the person replied to."),
    ),
    returns={
        "restrict_user_id": "the person's id",
        "restrict_username": "the person's name",
        "duration_seconds": "how long it lasts",
    },
)
