#!/bin/sh
# Install what the tests use and pip cannot bring: PostgreSQL. On Debian and its kin, and only if we may without asking.
# No database of the machine's own is made or started: the tests start their own servers.
PACKAGE=postgresql
for program in "$(command -v initdb)" /usr/lib/postgresql/*/bin/initdb; do
    [ -x "$program" ] && exit 0
done

skipping() {
    echo "PostgreSQL is not installed ($1): the tests that need it will be skipped." >&2
    exit 0
}

command -v apt-get > /dev/null || skipping "and there is no apt-get"
if [ "$(id -u)" = 0 ]; then
    as_root=
elif sudo -n true 2> /dev/null; then
    as_root="sudo -n"
else
    skipping "and only root may: apt install $PACKAGE"
fi

echo "Installing $PACKAGE for the tests (once) ..."
install() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends "$@" > /dev/null
}
$as_root apt-get update -qq || skipping "apt-get update failed"
install postgresql-common || skipping "apt-get install failed"
$as_root sed -i 's/^#\?create_main_cluster .*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
install "$PACKAGE" || skipping "apt-get install failed"
