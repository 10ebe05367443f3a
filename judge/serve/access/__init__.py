"""Who somebody is, and the one place that decides what they may see and do."""
