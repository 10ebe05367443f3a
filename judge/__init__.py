"""An online judge for spreadsheet work."""

__version__ = "0.1.0"
