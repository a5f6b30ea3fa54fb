"""What each aggregate asks the data for, and what is derived from it."""
