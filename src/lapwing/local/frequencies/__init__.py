"""Questions with a list of answers: mechanisms, advice which to take, and estimates of shares."""
