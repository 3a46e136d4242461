"""Commands that send and follow messages."""
