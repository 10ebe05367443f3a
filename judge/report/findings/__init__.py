"""Shows findings of rules about whole workbooks, from the record and the files."""
