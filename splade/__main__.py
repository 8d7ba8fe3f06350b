"""`python -m splade` is `lexical-sae`."""

import sys

from splade.cli import main

if __name__ == "__main__":
    sys.exit(main())
