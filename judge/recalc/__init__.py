"""Recalculation: formulas without a value get one, by an engine that runs sealed off."""
