"""Rules proposed from what differs between the inputs and the golds of a task."""
