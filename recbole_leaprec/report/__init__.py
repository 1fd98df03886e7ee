"""The `report` command: runs measured and put on one page."""
