"""The HTTP/1.1 engine of the reverse proxy: a client pool, and a server protocol with bounds.

It imports only `common`. What it needs of the service it is given: `connect`, which opens
connections that the egress guard has judged (`client.UpstreamPool`), `reject`, which writes
refusals (`server_protocol.ServerProtocol.configured`), and fast paths, which a subclass of
`ServerProtocol` has.
"""
