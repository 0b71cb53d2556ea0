"""``python -m dashboard [Streamlit's options] [-- --results DIR --read-only]``: as ``streamlit run dashboard/app.py``.

The first page comes a second sooner, since what it needs is loaded while the server starts.
"""

from __future__ import annotations

import sys
from pathlib import Path

from streamlit.web import cli

from . import warm
from .configuration import settings

arguments = sys.argv[1:]
warm.start(settings(arguments[arguments.index("--") + 1 :] if "--" in arguments else []))
cli.main(["run", str(Path(__file__).with_name("app.py")), *arguments], prog_name="streamlit")
