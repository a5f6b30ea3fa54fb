"""`lapwing local`: the respondent adds the noise."""
