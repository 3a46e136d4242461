"""Actions that change what a bot remembers."""
