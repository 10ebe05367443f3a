"""Episodes: a chat model works in a desktop with mouse and keyboard."""
