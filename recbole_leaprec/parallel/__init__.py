"""Training by several processes at once, over Ray Train: each takes a share of every batch, and all make the same step.

shares     a worker's share of a batch
trainer    a trainer that sums gradients up over the workers
fit        workers on a Ray cluster, that go on after one of them was lost
run        `run_leaprec` and `resume` with workers
"""
