"""From a suite to cells and units of work."""
