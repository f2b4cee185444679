"""How the services of an agent behave: visits, the questions they put, and probes."""
