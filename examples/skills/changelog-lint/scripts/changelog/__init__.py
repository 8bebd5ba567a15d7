"""What lint.py and notes.py share: reading a changelog (model), judging it (rules), input and output (skill)."""
