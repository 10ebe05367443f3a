"""The checks of published suites as items, in both readings, with one module for each suite."""
