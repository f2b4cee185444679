"""The HTTP/1.1 engine: clients of upstreams, and strict parsing of requests."""
