"""Signing in by an identity provider: OpenID Connect, for the people of a service that was started with one.

`settings` is what the operator says of the provider and of its groups; `provider` asks it, and checks what it answers;
`identities` keeps who of its people is who here, and the sessions that it began.
"""
