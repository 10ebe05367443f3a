"""A chat model that calls tools: the setting, the reading of its calls, and the episodes."""
