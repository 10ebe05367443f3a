"""Proposes rules and items from the differences between a task's inputs and golds."""
