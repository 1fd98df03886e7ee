"""The page of a report, which opens from disk, with its tables and pictures, out of curves."""
