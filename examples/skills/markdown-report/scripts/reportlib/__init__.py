"""A report as Markdown and as HTML; render.py is the entry point."""
