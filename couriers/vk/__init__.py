"""VK: messages of a community."""
