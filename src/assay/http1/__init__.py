"""The HTTP/1.1 engine of the reverse proxy: a client pool, and a bounded server protocol.

It imports only `common`. Its dependencies are passed in: `connect` opens connections to addresses
that the egress guard has approved (`client.UpstreamPool`), `reject` writes refusals
(`server_protocol.ServerProtocol.configured`), and a subclass of `ServerProtocol` adds fast paths.
"""
