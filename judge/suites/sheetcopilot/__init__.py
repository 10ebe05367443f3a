"""The published format of SheetCopilot: long instructions over workbooks, with check boards."""

NAME = "sheetcopilot"
DEFINITION = "dataset.xlsx"
INPUTS = "task_sheets"
GOLDS = ("task_sheet_answers_v2", "task_sheet_answers")
"""Folders of golds: those of the second version count where they are there, else the paper's."""

CATEGORIES = (
    "Entry and manipulation",
    "Formula",
    "Formatting",
    "Charts",
    "Pivot Table",
    "Management",
)
"""What a task may ask, as the published column has it; several for most tasks."""


def division_of(category: str) -> str:
    """The division of a category: its tasks are in the group ``yes``."""
    return category.lower().replace(" ", "_")
