"""The service: many analysts, one data set each, and budgets that hold; over HTTP.

Theory of operation
-------------------
`application` puts together what each request passes: `middleware` (sizes, times, headers, the log), `authentication`
(who asks, and whether too often), the routes (`question_routes`, `job_routes`, `people_routes`, `dataset_routes`), and
`problems`, by which every error leaves in one shape. A route does three things in this order: it demands a *right* of
who asks, looks an object up by a function that knows who asks, so that what is hidden is missing by the same code, and
calls the session.

The session charges and answers. The service adds nothing to the privacy argument and takes nothing from it: it says who
asks (the ledger's `principal`) and what they may be charged (`ledger.allowances`), and both are in the ledger's own
decision. People, tokens, grants, policies, kept answers and the audit log are in a SQLite file of their own (`store`),
which only ever says *less* is allowed: losing it loses no spending.
"""
