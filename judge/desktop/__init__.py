"""Desktops: a spreadsheet program in the sandbox, controlled by mouse and keyboard."""
