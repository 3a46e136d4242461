"""The HTTP layer of the API: server, routing, decoding, validation, authentication, problem documents."""
