"""The published formats of SpreadsheetBench."""
