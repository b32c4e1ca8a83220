"""Sections to one page, Markdown, figures and tables."""
