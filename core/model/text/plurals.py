"""Numbers of things in messages for people. Pure."""


def counted(number: int, thing: str, things: str = "") -> str:
    """Return the number with its thing: 1 error, 2 errors. `things`: more of them, by default with an s."""
    return f"{number} {thing if number == 1 else things or f'{thing}s'}"
