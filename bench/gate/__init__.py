"""The gate: are the numbers of a suite still those of its baseline, and if not, is any of them worse?

Light to import: the pytest plug-in lives here, and is loaded by every pytest of an environment.
"""
