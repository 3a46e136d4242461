"""The way in of VK: events of the community over Bots Long Poll. `serve` receives the same events as callbacks."""
