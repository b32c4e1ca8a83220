"""Facts of the machine, data files, downloads, atomic file writing."""
