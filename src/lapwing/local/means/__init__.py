"""Questions for a number: mechanisms, advice which to take, and estimates of the mean."""
