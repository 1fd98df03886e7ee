"""`python -m recbole_leaprec`, the same as the command `leaprec`."""

import sys

from recbole_leaprec.cli import main

if __name__ == "__main__":
    sys.exit(main())
