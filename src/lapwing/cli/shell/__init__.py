"""`lapwing shell`: one warm session, asked line by line."""
