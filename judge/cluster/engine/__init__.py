"""The only place that imports ``distributed``: connection, plugin, and what starts workers."""
