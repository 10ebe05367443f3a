"""How cells look: their formats, styles and conditional formats."""
