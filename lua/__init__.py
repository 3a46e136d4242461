"""The Lua scripts, one file each. `core.redis.scripts` reads them. A package so that pip installs it."""
