"""Makes and revokes invite links of a group (C-70)."""

from scenarios.schema import ActionType, Field, types

ACTION = ActionType(
    name="invite_link",
    help="Makes an invite link of the group, or revokes links.",
    fields=(
        Field("member_limit", types.WHOLE, "How many people may join by it."),
        Field("expire", types.DURATION, "How long it is valid."),
        Field("requires_approval", types.FLAG, "Whether an administrator approves each person."),
        Field("cleanup", types.FLAG, "Whether the links in the event's text are revoked instead.", default=False),
    ),
    returns={
        "invite_link": "the new link",
        "invite_links_deleted": "the links that were revoked",
        "invite_links_failed": "the links that could not be revoked",
    },
)
