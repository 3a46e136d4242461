"""The bot of MAX: what people write comes by long polling or a webhook, and a teacher's dialog has buttons there."""
