"""Settings: one tree, read once from the environment, `.env` and settings.yaml."""
