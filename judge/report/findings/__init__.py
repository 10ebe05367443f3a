"""What a rule about a whole workbook found, shown from the record and from the files."""
