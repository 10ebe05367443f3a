"""``compare_table`` of Spider2-V and OSWorld, and how it reads a workbook."""
