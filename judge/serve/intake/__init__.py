"""Taking submissions in: bodies onto the disk, checked, and into the queue with the quota."""
