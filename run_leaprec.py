"""`python run_leaprec.py --model=SASRecCD --dataset=ml-100k`; the same as the installed command `leaprec`."""

import sys

from recbole_leaprec.cli import main

if __name__ == "__main__":
    sys.exit(main())
