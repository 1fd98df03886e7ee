"""From anybody's files to atomic files: CSV, TSV and Parquet, and the files of the paper's datasets as their publishers ship them.

It knows nothing of RecBole. Files are read as they come: what is kept grows with the interactions, and not with the files.
"""
