"""The only package that imports ``distributed``: connection, plugin, and starting workers."""
