"""The built-in architectures, one file each."""
