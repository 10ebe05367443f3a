"""Reading workbooks as the hostile files that they may be."""
