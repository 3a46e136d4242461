"""The types about bots: events, the bot in force, runs of its scenarios."""
