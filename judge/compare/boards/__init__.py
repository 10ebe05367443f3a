"""Check boards over workbooks, as SheetCopilot publishes them and as they are meant."""
