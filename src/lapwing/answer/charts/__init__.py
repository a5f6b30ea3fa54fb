"""Charts of answers, drawn on the server: where everything is, and templates that write it as SVG.

They need no script and take the colours of the page. What is drawn of a number is what the answer says of it: its
value, and the interval of its noise.
"""
