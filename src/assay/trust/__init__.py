"""What we believe about an agent, and why (spec 2.1 to 2.7, 4.2)."""
