"""What holds for every test."""

from __future__ import annotations

import signal

from hypothesis import settings

# A deadline for an example is a timing assertion: on a busy machine it fails tests that found nothing.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

# A shell that starts a job in the background makes it ignore SIGINT, and every child inherits that: tests of Ctrl-C would
# interrupt nobody. With a handler here, what the tests start gets the default again.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
