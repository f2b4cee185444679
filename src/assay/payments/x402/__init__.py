"""Payments by x402: its codec, our own engine, and clients of facilitators."""
