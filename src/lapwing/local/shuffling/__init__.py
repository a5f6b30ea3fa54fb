"""What local reports lose if nobody learns who sent which."""
