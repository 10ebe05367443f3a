"""Inference: prompts, chat models, rounds of execution feedback."""
