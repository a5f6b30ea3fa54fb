"""The people of a service by command: who they are, their tokens, who may ask, and how the budget is shared out."""
