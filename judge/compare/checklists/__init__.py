"""Checklists: criteria with points over a workbook and the files beside it."""
