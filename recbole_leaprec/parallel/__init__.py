"""Training with several processes over Ray Train. Each gets a share of every batch, and all make the same step.

shares     a worker's share of a batch
trainer    a trainer that sums up gradients over the workers
fit        workers on a Ray cluster, which continue after one of them was lost
run        `run_leaprec` and `resume` with workers
"""
