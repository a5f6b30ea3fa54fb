"""What a privacy loss is, how losses add up, and what they mean in (ε, δ)."""
