"""All keys, their allowed values and their defaults. Nothing here loads torch or RecBole."""
