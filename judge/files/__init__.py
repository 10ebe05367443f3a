"""Reading and writing of files, in one place for everything that the judge keeps.

``documents`` reads JSON and text, ``json_lines`` reads and appends lines, ``yaml_documents`` reads
YAML, and ``forms`` declares which fields of results have which type. ``writing`` writes files and
folders atomically, and locks them against other processes; ``hashed`` keeps files under the hash of
their content, ``media`` recognises pictures and documents, and ``paths`` names the folders of the
user's cache and state.
"""
