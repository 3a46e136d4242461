"""Commands for the first minutes: demo, up, doctor."""
