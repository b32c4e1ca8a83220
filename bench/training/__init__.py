"""Rows and scaling, search, the stack of networks, drawing, checkpoints."""
