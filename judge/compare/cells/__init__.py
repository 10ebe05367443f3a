"""The cells of an answer range compared with those of its gold: values, looks, what was kept."""
