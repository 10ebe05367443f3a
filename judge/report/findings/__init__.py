"""Findings of a rule about a whole workbook, shown from the record and from the files."""
