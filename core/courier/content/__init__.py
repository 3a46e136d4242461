"""What a courier gets of a message's content: what its channel shows, text in place of the rest, files."""
