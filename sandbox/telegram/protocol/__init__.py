"""MTProto without its methods: transports, encryption, keys, the messages of a packet."""
