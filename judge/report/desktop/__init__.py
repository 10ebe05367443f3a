"""Desktop episodes in reports: read, counted, compared, marked, and shown as a moving picture."""
