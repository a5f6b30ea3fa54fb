"""Identity providers for tests: a small one in this process, and npm's `oidc-provider`."""
