"""From text to a priced plan: parse, bind, bound, calibrate, render. Reads the question and the catalog, never data."""
