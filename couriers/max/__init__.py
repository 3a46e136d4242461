"""MAX: messages through its Bot API."""
