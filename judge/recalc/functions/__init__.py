"""Functions of Excel that are computed here, next to the engines or after them."""
