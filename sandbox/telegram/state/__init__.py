"""What this Telegram knows: users, accounts, dialogs, files, and the updates pushed to clients."""
