"""What a question means, and what follows from that alone: its parts, its work, what it needs of an engine."""
