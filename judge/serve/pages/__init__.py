"""Pages for people, a module for each family, each with a ``router``; see ``judge.serve.app``."""
