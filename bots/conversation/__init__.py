"""Conversations: what a bot answers to an event, the same for every channel.

Guarantees: a conversation sends nothing and stores nothing about itself; it returns its replies and the new state of
the dialog, and `bots.dialogs` sends and stores them. Every refusal has its own text in the person's language.

    linking    /start, e-mail address and code, /unlink, /help, /settings
    selection  the teacher's dialog: addressees, text, time, confirmation; then the status of the delivery
"""
