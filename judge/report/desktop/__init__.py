"""Desktop episodes in reports: reads, counts, compares, marks and animates them."""
