"""The connection to Redis/Valkey: keys, Lua scripts, pipelining, keyspace events, streams, server checks."""
