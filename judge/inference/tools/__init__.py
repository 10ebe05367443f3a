"""A chat model that calls tools: the setting, what of its calls is used, and the episodes."""
