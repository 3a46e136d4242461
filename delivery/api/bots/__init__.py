"""The bots over HTTP: their events, runs, forms and scenarios."""
