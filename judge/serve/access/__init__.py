"""Accounts and sign-in, and the only module that decides what callers may see and do."""
