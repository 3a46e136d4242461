"""Plays a bot for its author: the running bot on a server of its own, with a clock that is set (C-99, C-110)."""
