"""Data files that curators upload into the folders of a service: streamed, checked, and then put in their place.

It imports nothing: the process that checks a file (`reader`) has to start quickly, without the service.
"""
