#!/bin/sh
# Install what the tests use and pip cannot bring: PostgreSQL, Chromium, Node, Java, and what is named besides.
# On Debian and its kin, and only if we may without asking. No database of the machine's own is made or started: the
# tests start their own servers.
has() {
    for program in "$@"; do
        [ -x "$program" ] || [ -n "$(command -v "$program")" ] && return 0
    done
    return 1
}

missing=
has initdb /usr/lib/postgresql/*/bin/initdb || missing="$missing postgresql"
has chromium chromium-browser || missing="$missing chromium"
has node nodejs || missing="$missing nodejs"
has java || missing="$missing openjdk-17-jre-headless"
for package in "$@"; do
    program=$package
    [ "$package" = coq ] && program=coqc # the package is not called like what it brings
    has "$program" "/usr/sbin/$program" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

skipping() {
    echo "Not installed:$missing ($1): the tests that need it will be skipped." >&2
    exit 0
}

command -v apt-get > /dev/null || skipping "and there is no apt-get"
if [ "$(id -u)" = 0 ]; then
    as_root=
elif sudo -n true 2> /dev/null; then
    as_root="sudo -n"
else
    skipping "and only root may: apt install$missing"
fi

echo "Installing$missing for the tests (once) ..."
install() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends "$@" > /dev/null
}
$as_root apt-get update -qq || skipping "apt-get update failed"
for package in $missing; do
    if [ "$package" = postgresql ]; then
        install postgresql-common || skipping "apt-get install failed"
        $as_root sed -i 's/^#\?create_main_cluster .*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
    fi
    install "$package" || skipping "apt-get install failed"
done
