"""What is printed, and what of it is safe to print."""
