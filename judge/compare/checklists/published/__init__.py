"""The checks of published suites as items, in both readings; a module for each suite."""
