"""Makes the page of a report, with its tables and pictures, from curves. The page opens from disk."""
