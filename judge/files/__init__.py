"""Reads and writes all files that the judge keeps.

``documents`` reads JSON and text, ``json_lines`` reads and appends lines, ``yaml_documents`` reads
YAML, and ``forms`` checks the types of fields. ``writing`` writes files and folders atomically, and
locks them against other processes; ``hashed`` stores files under the hash of their content,
``media`` recognises pictures and documents, and ``paths`` finds the folders of the user's cache and
state.
"""
