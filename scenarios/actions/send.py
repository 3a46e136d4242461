"""Sends a message to the chat of the event (C-40 to C-49)."""

from scenarios.schema import ActionType, Field, types

ACTION = ActionType(
    name="send",
    help="Sends a message to the chat of the event.",
    placeholder=True,
    fields=(
        Field("text", types.TEXT, "The text of the message, in HTML unless `parse_mode` says otherwise."),
        Field("additional_text", types.TEXT, "Appended to the text."),
        Field(
            "inline",
            types.KEYBOARD,
            "Buttons below the message: a text, `{text: scenario}` or `{text: address}`. Wins over `reply`.",
        ),
        Field("reply", types.KEYBOARD, "Buttons in place of the person's keyboard; `[]` removes them."),
        Field("message_reply", types.FLAG, "Whether the message replies to the message of the event.", default=False),
        Field("callback_edit", types.FLAG, "Whether the message of a pressed button is edited instead.", default=True),
        Field("remove", types.FLAG, "Whether the message of the event is removed first.", default=False),
        Field(
            "attachment",
            types.ATTACHMENT,
            "Files of the bot's folder, addresses or ids of the provider. The text becomes the first caption.",
        ),
        Field("parse_mode", types.choice("HTML", "MarkdownV2"), "How marks in the text are written.", default="HTML"),
        Field(
            "private_answer", types.FLAG, "Whether the message goes to the person instead of the group.", default=False
        ),
        Field("exact_message_id", types.WHOLE, "The message to edit, instead of that of the event."),
        Field("remove_message_id", types.WHOLE, "The message to remove, instead of that of the event."),
    ),
    returns={"last_message_id": "the id of the message that was sent last"},
)
