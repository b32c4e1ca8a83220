"""Where plug-ins come from, how they describe themselves, and scaffolding for new ones."""
