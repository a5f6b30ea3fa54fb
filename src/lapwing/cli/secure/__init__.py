"""The commands of secure sums."""
