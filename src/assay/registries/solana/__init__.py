"""The 8004 agent registry on Solana: its accounts, addresses and instructions."""
