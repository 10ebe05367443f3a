"""The queue: claims, leases, watching, and running judgings."""
