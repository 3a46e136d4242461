"""Actions that decide which scenario goes on."""
