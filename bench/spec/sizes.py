"""The largest sizes that are accepted, each checked before anything of that size is made.

They are far above what a study needs: a number beyond them is a typing error, or a file made to exhaust the memory.
"""

MOST_SEEDS = 10_000  # of a suite
MOST_CELLS = 100_000  # of a plan: datasets x methods x seeds
MOST_CONFIGURATIONS = 10_000  # that a search trains
MOST_POINTS = 1_000_000  # of the grid that a search chooses from
MOST_DRAWS = 100_000  # of a cell
MOST_DRAWN_VALUES = 2**30  # draws x test rows x outputs: 4 GiB in single precision
MOST_REPEATS = 10**9  # epochs, rows of a batch, and other counts that are not held in memory
WIDEST_LAYER = 100_000  # units or channels, and other whole numbers among the options of a network
MOST_WEIGHTS = 10**9  # of a network
MOST_NETWORKS = 10_000  # of a cell
MOST_ARRAY_BYTES = 2**30  # the arrays of one cell, uncompressed
MOST_DOCUMENT_BYTES = 2**28  # of a suite, a baseline or another document that a user names
MOST_WORKERS = 1_000  # of a run
LONGEST_TIME_LIMIT = 366 * 24 * 3600  # seconds; clocks of the system overflow at some number
