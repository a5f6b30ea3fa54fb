"""What is measured of rows, cell by cell."""
