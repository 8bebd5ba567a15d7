"""Reading and judging one CSV table; profile_csv.py is the entry point."""
