"""Episodes on a desktop: a chat model works there with mouse and keyboard."""
