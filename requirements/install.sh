#!/bin/sh
# Install what a lock names, checked by its hashes, into the environment of a Python: by uv, which takes seconds where
# pip takes minutes; by pip where uv cannot, as it does not read the settings that pip has of its registries.
# usage: requirements/install.sh PYTHON LOCK
set -eu
pip="$1 -m pip --disable-pip-version-check --quiet"
$pip install --require-hashes -r "$(dirname "$0")/installer.lock" &&
    "$1" -m uv pip install --quiet --python "$1" --require-hashes -r "$2" ||
    { echo "uv could not; pip tries."; $pip install --require-hashes -r "$2"; }
