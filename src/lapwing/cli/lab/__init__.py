"""`lapwing lab`: differential privacy and its attacks, tried out."""
