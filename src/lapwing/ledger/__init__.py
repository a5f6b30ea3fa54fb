"""The durable record of loss: what was bought, at what price, and what is left."""
