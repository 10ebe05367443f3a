"""Where the server keeps things: the tables, transactions, events, and the data folder."""
