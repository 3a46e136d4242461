"""Fits the content of a message to a channel: the features that it shows, text in place of the others, files."""
