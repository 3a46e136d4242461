"""What an iteration records, so that a repetition of it goes on where it was."""
