"""Converts files to atomic files: CSV, TSV and Parquet files, and the published files of the paper's datasets.

It does not need RecBole. Files are read in pieces: memory grows with the interactions that are kept, not with the files.
"""
