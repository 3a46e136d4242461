"""Checks of the paths through a bot: what starts, what is reached, what repeats."""
