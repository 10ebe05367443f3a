"""Check boards over workbooks: what SheetCopilot asks of each sheet, as published and mended."""
