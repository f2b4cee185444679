"""Who controls the addresses that an agent declares, and who only copies another (spec 4.2)."""
