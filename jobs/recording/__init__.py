"""The records of an iteration, from which its repetition continues."""
