"""The machine: its description, data files, downloads, atomic file writing."""
