"""The gate: are the values of a suite still those of its baseline, and if not, is any of them worse?

Importing it is fast: every pytest of an environment loads the plug-in that lives here.
"""
