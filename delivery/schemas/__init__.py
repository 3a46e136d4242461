"""The JSON shapes of the API: `requests`, `responses`, and how responses write times. Pure; imports no aiohttp."""
