"""Reading and writing of files, in one place for everything that the judge keeps.

``documents`` reads JSON and text, ``json_lines`` reads and appends lines, ``yaml_documents`` reads
YAML, and ``forms`` says which fields of results have which type. ``writing`` puts files and
folders in their places as a whole, ``locks`` keeps two processes apart, ``places`` knows where the
user's cache and state are.
"""
