"""The teachers' dialogs in Telegram: replies with buttons, and messages that are changed."""
