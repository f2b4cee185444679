"""The 8004 agent registry on Solana: its programs, accounts and instructions."""
