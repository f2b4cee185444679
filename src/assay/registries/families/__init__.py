"""One file for each family of chains."""
