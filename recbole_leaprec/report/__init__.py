"""Tables, pictures and one page that opens from disk, out of curves."""
