"""Pages of results for everybody: snapshots of released results (`snapshots`), and the HTML of a snapshot (`page`)."""
