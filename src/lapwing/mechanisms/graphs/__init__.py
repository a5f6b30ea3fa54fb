"""Statistics of graphs whose edges or whole nodes are protected."""
