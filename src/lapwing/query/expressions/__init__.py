"""Total functions of one row: their types, their meaning, and what each is written as."""
