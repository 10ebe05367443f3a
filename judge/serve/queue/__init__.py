"""The queue: claims, leases, watching, and what has judgings done."""
