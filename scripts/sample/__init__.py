"""What the sample suite is made of: one module for each task."""
