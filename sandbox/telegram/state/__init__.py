"""The state of the simulated Telegram: users, accounts, dialogs, files, and the updates pushed to clients."""
