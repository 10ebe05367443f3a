"""Routes of the API, a module for each family, each with a ``router``; see ``judge.serve.app``."""
