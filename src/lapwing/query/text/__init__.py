"""From text to a syntax tree: what the grammar allows, the dialects, options and parameters."""
