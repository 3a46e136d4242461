"""Actions about members of groups."""
