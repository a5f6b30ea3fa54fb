"""Questions for a word: sketches that count known words, and prefixes that find unknown ones."""
