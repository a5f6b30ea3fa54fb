"""Questions built in Python with the verbs of Ibis, instead of written in SQL.

Theory of operation. A table expression is a frozen tree of what is done to rows (`relations`), with expressions over a
row or an answer in it (`nodes`). It knows the names of its columns and nothing else. Asked, it is written as one SQL
text (`writing`), and that text goes where every text goes: to the parser and the binder. So the builder can say
nothing that an analyst could not write; every refusal, price and plan is that of the text, and no privacy argument
rests on this package. What it must get right is that a value stays one value and a name one name: both are written by
`literals` alone, values as constants, names always in quotes, and no other text of a user's ever enters a question.
"""
