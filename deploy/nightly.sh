#!/bin/sh
# Back up what belongs together, restore the copy into a folder of its own, and verify it: a backup that was never
# restored is none. Run it as the user of the service, in the folder of the catalogs, while the service runs:
#
#     nightly.sh visits.lapwing.toml [more catalogs]
#
# LAPWING_BACKUPS is where backups go (backup), LAPWING_BACKUPS_KEPT how many stay (14). It ends with 0 if all is well.
# What fails ends it, says why on standard error, and leaves the backups before as they are.
set -eu
umask 077
[ $# -gt 0 ] || { echo "Name the catalogs to back up, as in: nightly.sh visits.lapwing.toml" >&2; exit 2; }
to=${LAPWING_BACKUPS:-backup}
kept=${LAPWING_BACKUPS_KEPT:-14}
python=${LAPWING_PYTHON:-python3}
mkdir -p "$to"
new=$(mktemp -d "$to/.new.XXXXXX")
scratch=$(mktemp -d)
trap 'rm -rf "$new" "$scratch"' EXIT

for catalog in "$@"; do
    name=$(basename "$catalog" .toml)
    lapwing ledger verify --catalog "$catalog"
    lapwing audit-log verify --catalog "$catalog"
    lapwing ledger backup "$new/$name.ledger.jsonl" --catalog "$catalog"
    lapwing ledger verify --file "$new/$name.ledger.jsonl"
    cp -p "$catalog" "$new/"
    # The same catalog with an empty ledger of its own, into which the copy is restored.
    mkdir "$scratch/$name"
    sed 's|^ledger *=.*|ledger = "sqlite:restored.db"|' "$catalog" > "$scratch/$name/$name.toml"
    lapwing ledger restore "$new/$name.ledger.jsonl" --newest --catalog "$scratch/$name/$name.toml"
    lapwing ledger verify --catalog "$scratch/$name/$name.toml"
done

# People in a file; of those in PostgreSQL, pg_dump makes the copy.
if [ -f lapwing.people.db ]; then
    "$python" - "$new/lapwing.people.db" <<'END'
import sqlite3
import sys

sqlite3.connect("lapwing.people.db").execute("VACUUM INTO ?", (sys.argv[1],))
(found,) = sqlite3.connect(sys.argv[1]).execute("PRAGMA integrity_check").fetchone()
sys.exit(0 if found == "ok" else f"The copy of the people is damaged: {found}")
END
fi

name=$(date -u +%Y-%m-%dT%H%M%SZ)
mv "$new" "$to/$name"
ls -1d "$to"/20* | sort -r | tail -n "+$((kept + 1))" | while read -r old; do rm -rf "$old"; done
echo "Backed up, restored and verified: $to/$name"
