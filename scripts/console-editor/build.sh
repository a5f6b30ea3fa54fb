#!/bin/sh
# Build the editor of the console's questions from its lock, and put it where the package has it; with --check, compare.
# Where there is no npm, or no registry, --check compares the digests of what was built last, and says so.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
static=$here/../../src/lapwing/server/console/static
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/package.json" "$here/package-lock.json" "$here/editor.mjs" "$work"
cd "$work"
digest() { cat "$here/package-lock.json" "$here/editor.mjs" "$static/editor.js" | sha256sum | cut -d' ' -f1; }
if ! npm ci --silent --no-audit --no-fund > npm.log 2>&1; then
    [ "${1:-}" = --check ] || { cat npm.log; exit 1; }
    digest | cmp - "$here/sum"
    echo "The editor was not rebuilt, as npm's packages cannot be had here; its digests are those of the last build."
    exit
fi
npx esbuild editor.mjs --bundle --minify --format=iife --target=es2022 --legal-comments=none --log-level=warning \
    --outfile=editor.js
for package in node_modules/@codemirror/* node_modules/@lezer/* node_modules/style-mod node_modules/w3c-keyname \
    node_modules/crelt node_modules/@marijn/*; do
    [ -f "$package/package.json" ] || continue
    node -p "const one = require('./$package/package.json'); one.name + ' ' + one.version + ', ' + one.license"
    cat "$package/LICENSE"
    echo
done > licences.txt
if [ "${1:-}" = --check ]; then
    cmp editor.js "$static/editor.js"
    cmp licences.txt "$here/../../src/lapwing/server/console/editor-licences.txt"
    echo "The editor is what its lock builds."
else
    cp editor.js "$static/editor.js"
    cp licences.txt "$here/../../src/lapwing/server/console/editor-licences.txt"
fi
digest > sum
if [ "${1:-}" = --check ]; then cmp sum "$here/sum"; else cp sum "$here/sum"; fi
