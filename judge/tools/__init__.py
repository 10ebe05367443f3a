"""Tools for agents that work on spreadsheets, and the server that offers them."""
