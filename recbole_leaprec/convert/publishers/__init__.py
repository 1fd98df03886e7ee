"""The paper's datasets from the files that their publishers ship, one per file: which files, where they are, and how they read."""
