"""Who is in a group: its members and their rights, invite links, joining and leaving."""
