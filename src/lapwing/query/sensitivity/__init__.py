"""How far one privacy unit can move what is measured, with proofs."""
