"""Webhooks, metrics, backups, and the commands of an operator."""
