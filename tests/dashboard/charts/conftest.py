"""An empty page on which one chart or table is drawn by its own script."""

from __future__ import annotations

import pytest


@pytest.fixture
def page(chromium, request):
    """As wide as the test module's PAGE_WIDTH says; an exception of a script fails the test."""
    context = chromium.new_context(viewport={"width": request.module.PAGE_WIDTH, "height": 700})
    found = context.new_page()
    found.complaints = []
    found.on("pageerror", lambda error: found.complaints.append(str(error)))
    yield found
    assert not found.complaints, found.complaints
    context.close()
