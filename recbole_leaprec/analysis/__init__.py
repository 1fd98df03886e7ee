"""What trained models' lists are worth: measurements of every user, curves over lambda, statistics, and pictures."""
