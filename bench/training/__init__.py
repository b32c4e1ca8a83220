"""Training and drawing: data preparation, option search, stacks of networks, checkpoints."""
