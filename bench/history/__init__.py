"""Histories: the values of a suite over the versions of the code, with the places where they changed.

`identity` says which stored cells are the same cell of other versions, `series` reads them, `changes` finds where their
values became others, `files` writes the page of one metric. The leaderboard shows the same series.
"""
