"""The web console: its files, and how they are sent."""
