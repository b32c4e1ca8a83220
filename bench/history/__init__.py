"""Histories: the values of a suite over the versions of the code, with the places where they changed.

`identity` decides which stored cells are the same cell in different versions, `series` reads their values, `changes`
finds change points, `view` prepares pages and `files` writes those of one metric. The leaderboard uses the same series.
"""
