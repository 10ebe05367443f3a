"""What the sample of checklists is made of: a budget to complete, and a memo to write."""
