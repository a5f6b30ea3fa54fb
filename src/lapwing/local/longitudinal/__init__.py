"""The same question again and again: what repeats cost, and mechanisms that are made for it."""
