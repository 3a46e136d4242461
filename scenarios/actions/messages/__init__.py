"""Actions that send, copy, remove and read messages."""
