#!/bin/sh
# Take passwords out of the files that NAME_FILE names, as containers are given secrets, and run lapwing with them.
# An empty file is no password: so the first curator's is taken away once it has been changed.
set -eu
umask 077
for name in LAPWING_CURATOR_PASSWORD PGPASSWORD; do
    eval "file=\${${name}_FILE:-}"
    [ -n "$file" ] || continue
    if [ ! -r "$file" ]; then
        echo "${name}_FILE is $file, which user $(id -u) cannot read: give the file to that user, mode 0400." >&2
        exit 2
    fi
    if [ -s "$file" ]; then
        value=$(cat "$file")
        export "$name=$value"
    fi
    unset "${name}_FILE"
done
exec lapwing "$@"
