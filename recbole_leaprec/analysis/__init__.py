"""How good the lists of trained models are: measurements of every user, curves over lambda, statistics, and pictures."""
