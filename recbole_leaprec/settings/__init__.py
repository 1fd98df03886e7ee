"""Every key, what it takes and what it is by default; no torch and no RecBole are loaded for it."""
