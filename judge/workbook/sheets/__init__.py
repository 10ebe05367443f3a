"""The cells of one sheet, read from its XML."""
