"""Readers of the published files of the paper's datasets, one module per dataset."""
