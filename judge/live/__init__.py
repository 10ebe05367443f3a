"""A person at a desktop: its picture and its input in the browser, what was done on record."""
