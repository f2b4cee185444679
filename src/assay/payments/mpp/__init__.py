"""Payments by MPP: charges on Tempo."""
