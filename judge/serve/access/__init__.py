"""Accounts and sign-in; one of the modules, ``rights``, decides what callers may see and do."""
