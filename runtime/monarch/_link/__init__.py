"""How processes find each other and prove that they belong together.

`address` reads addresses, `secret` holds the key, `handshake` is the pure protocol, `gate` listens,
dials and hands authenticated sockets to the engine: `guests` come in, `dials` go out.
"""
