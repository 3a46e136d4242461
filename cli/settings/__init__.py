"""Settings: one frozen tree per process, read once from settings.yaml, `.env` and the environment.

`sources` collects the texts, `parsing` converts one text to its type, `settings` has the tree and checks the names.
Guarantee: an unknown name or a value of the wrong type is refused at the start, with its source. Couriers declare their
own settings (docs/decisions/0002).
"""
