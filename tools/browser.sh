#!/bin/sh
# Chromium for the end-to-end tests of the dashboard. Without it those tests are skipped and say so.
set -eu
for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null 2>&1; then echo "browser: $(command -v "$name") is there"; exit 0; fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "browser: installing Debian's chromium (about 90 MB to fetch)"
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
else
  echo "browser: no chromium; run: sudo apt-get install chromium" >&2
  exit 1
fi
