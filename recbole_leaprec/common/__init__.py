"""Helpers for every part of the package: files and folders, reading files of others, messages, interruptions."""
