"""Reading and writing of files, in one place for everything that the judge keeps.

``documents`` reads JSON and text, ``json_lines`` reads and appends lines, ``yaml_documents`` reads
YAML, and ``forms`` declares which fields of results have which type. ``writing`` writes files and
folders atomically, ``locks`` keeps two processes from writing at once, and ``places`` knows where
the user's cache and state are.
"""
