"""`python -m pytest_t2n.cli`, as the console script `t2n`."""

import sys

from pytest_t2n.cli.command import main

sys.exit(main())
