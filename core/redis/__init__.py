"""The connection to Redis/Valkey: keys, Lua functions, pipelining, keyspace events, streams, server checks.

    Store.run, Store.command ─▶ pipeline ─▶ connection ─▶ server          library, keys, constants: what is sent
    keyspace_events, stream_reader ─▶ a connection of their own

Guarantees: every connection speaks RESP3; calls of one turn of the event loop are written together; a call whose
connection breaks is repeated until its deadline, so every function is safe to repeat. Every key is declared in `keys`.
Used by all of core; knows only core.model and core.errors.
"""
