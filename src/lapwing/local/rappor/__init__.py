"""RAPPOR: any text through Bloom filters and two layers of noise, and what its reports say about candidates."""
