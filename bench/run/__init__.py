"""The driver and its workers."""
