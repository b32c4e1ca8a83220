"""Stored results: the database, array files, leases, and operations on a store."""

DEFAULT_URL = "sqlite:///runs/uqbench.db"
