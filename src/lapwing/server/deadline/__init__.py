"""Answers that leave at a moment fixed before they are charged, for people who may not see how long they took.

Theory of operation
-------------------
How long an engine takes is a function of the data, and nothing bounds what that tells. So somebody who is not trusted
with time is answered at a *deadline*: the moment of admission and a length of time, which is a function of public facts
alone. Answer, refusal after a search and fault leave then. What was not ready is a fault, as an engine that failed is:
its price stays paid, and three of them stop the data set. Nothing is put in the place of an answer.

- `cost`: from plan and catalog, seconds of a processor that a question can take, and the length of its deadline.
  `speed` measures the machine, on made-up rows.
- `admission`, in the process that speaks HTTP (the *front*): who is next, and when. It keeps a virtual clock, which
  goes on by what each question may cost, never by what it did. So who waits how long is a function of public facts too.
- `process`: the line to the *question process*, in which whatever touches rows is done, by one thread of the engine on
  a processor of its own, where there are two. It is started anew if it dies; the ledger counts what was under way.
- `asking`, in the question process: asks, and holds what the engine returns until a public moment, so that noise,
  record and kept answer come at public times too. `turns` says whose question the engine runs next.

What leaves at once is public: what was bought before, by whomever, and what is refused before anything is charged. As
an answer is in the ledger from its public moment on, and not before, nobody learns from what is free when it was ready.

What is left to the clock is whether a question was a fault: of n charged questions at most three were, so that is at
most log2(1 + n + C(n, 2) + C(n, 3)) bits in all, and none while nothing is too late. And two processes on one machine
share its memory and caches, which is measured (`benchmarks/timing.py`) and not proven.
"""
