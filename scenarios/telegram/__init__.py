"""What actions do through the Bot API of Telegram: members, rights, recordings."""
