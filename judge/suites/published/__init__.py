"""Suites whose tasks are checklists, as their repositories publish them; a module for each."""
