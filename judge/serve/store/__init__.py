"""Storage of the server: the tables, transactions, events, and the data folder."""
