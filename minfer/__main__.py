"""``python -m minfer`` is the ``minfer`` command."""

import sys

from .cli import main

sys.exit(main())
