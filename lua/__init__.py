"""The functions of the server in Lua, read by `core.redis.library`. A package so that pip installs it."""
