"""Members of a group and their rights, invite links, joining and leaving."""
