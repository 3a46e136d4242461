"""Plays a bot without Redis and providers: the engine of the server over a memory, with a clock that is set (C-99)."""
