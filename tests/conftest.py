"""What holds for every test."""

from __future__ import annotations

from hypothesis import settings

# A deadline for an example is a timing assertion: on a busy machine it fails tests that found nothing.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")
