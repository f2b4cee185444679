"""Observes how the services of an agent behave: visits, their requests, and probes."""
