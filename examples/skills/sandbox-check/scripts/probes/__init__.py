"""The probes of check.py: what the kernel grants, what is around, which files are in reach."""
