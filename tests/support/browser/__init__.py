"""Debian's Chromium, driven over its own pipe, and Node: what the browser's modules are tested in."""
