"""The contents of the checklist sample: a budget to complete, and a memo to write."""
