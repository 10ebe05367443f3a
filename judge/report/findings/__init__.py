"""What a rule over a whole workbook found, as a page shows it: from the record and the files."""
