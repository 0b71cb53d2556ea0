#!/bin/sh
# Make the virtual environment with the pinned dependencies; says what it does and what to do when it cannot.
set -eu
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }
command -v "$PYTHON" >/dev/null 2>&1 || fail "no $PYTHON on the path; install Python 3.11 or newer (apt-get install python3 python3-venv)"
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
  || fail "$PYTHON is $("$PYTHON" -V 2>&1), needs Python >= 3.11; name another: make PYTHON=python3.12 ..."
if ! "$PYTHON" -c 'import ensurepip' >/dev/null 2>&1; then
  # Debian and Ubuntu split venv's pip off into a package of its own.
  version=$("$PYTHON" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "setup: installing $version (Debian keeps venv apart)"
    apt-get update -qq && apt-get install -y -qq "$version" >/dev/null || fail "apt-get install $version failed; install it by hand"
  else
    fail "this Python has no venv; run: sudo apt-get install $version"
  fi
fi
[ -x "$VENV/bin/python" ] || { echo "setup: making $VENV"; "$PYTHON" -m venv "$VENV"; }
echo "setup: installing the pinned dependencies into $VENV (about 250 MB the first time)"
"$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --progress-bar on -r requirements.txt
"$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . 2>/dev/null \
  || "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -e .
touch "$VENV/.ready"
