"""Edits workbooks: sets cells and replaces parts, and changes nothing else."""
