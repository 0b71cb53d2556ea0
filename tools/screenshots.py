"""Take the README's screenshots of the dashboard: ``python tools/screenshots.py RESULTS [OUT]`` (default docs/images).

Fails like the end-to-end tests do: on a console error, an exception on the screen or a request to another host.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT))

from PIL import Image  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402

from tests.dashboard import browser  # noqa: E402

# name: path and query, width, height, scheme; a chart's name as a fifth takes that chart alone
SHOTS = {
    "overview": ("", 1280, 1180, "light"),
    "overview-dark-phone": ("", 390, 844, "dark"),
    "commit": ("commit", 1280, 1000, "light"),
    "queue": ("queue", 1280, 900, "light"),
    "decomposition": ("", 1280, 900, "light", "decomposition"),
    "published": ("published", 1280, 900, "light"),
    "layer": ("commit?by=one+layer+over+time", 1280, 900, "light", "layer"),
    "heatmap": ("explore?as=heatmap&on=h200", 1280, 900, "dark"),
}
MOST_BYTES = 300_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("out", type=Path, nargs="?", default=CHECKOUT / "docs" / "images")
    parser.add_argument("--query", default="", metavar="K=V&...", help="added to every address, e.g. machine=h200&nt=3325")
    parser.add_argument("--only", choices=SHOTS, action="append", help="only these")
    arguments = parser.parse_args()
    if browser.executable() is None:
        print("screenshots: no chromium on this machine; run 'make browser', or set MINFER_CHROMIUM", file=sys.stderr)
        return 2
    arguments.out.mkdir(parents=True, exist_ok=True)
    with browser.serving(arguments.results.resolve()) as base, sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=browser.executable(), args=list(browser.FLAGS))
        for name in arguments.only or SHOTS:
            path, width, height, scheme, *chart = SHOTS[name]
            context = running.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
            watched = browser.Watched(context, base)
            joined = "&" if "?" in path else "?"
            watched.open(f"{path}{joined}{arguments.query}" if arguments.query else path)
            watched.page.wait_for_timeout(800)
            watched.check()
            shown = watched.page.locator(f".st-key-{chart[0]}") if chart else watched.page
            size = _save(shown.screenshot(), arguments.out / f"dashboard-{name}.png")
            print(f"{name}: {size:,} bytes")
            context.close()
        running.close()
    return 0


def _save(shot: bytes, path: Path) -> int:
    """With a palette: a third of the size, and nothing that the eye misses."""
    picture = Image.open(io.BytesIO(shot)).convert("RGB").quantize(colors=192, dither=Image.Dither.NONE)
    picture.save(path, optimize=True)
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise SystemExit(f"screenshots: {path} has {size} bytes, more than {MOST_BYTES}; lower its height")
    return size


if __name__ == "__main__":
    sys.exit(main())
