"""The built-in networks, one plug-in per file."""
