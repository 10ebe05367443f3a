"""Checklists: criteria with points over a workbook and the files next to it."""
