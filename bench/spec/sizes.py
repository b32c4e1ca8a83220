"""The largest sizes that are accepted, each checked before anything of that size is made.

They are far above what a study needs: a number beyond them is a typing error, or a file made to exhaust the memory.
"""

MOST_ARRAY_BYTES = 2**30  # the arrays of one cell, uncompressed
