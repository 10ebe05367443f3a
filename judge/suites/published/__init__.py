"""Published suites whose tasks are checklists; one module for each."""
