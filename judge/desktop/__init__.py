"""Desktops: a spreadsheet program that is worked with mouse and keyboard, isolated."""
