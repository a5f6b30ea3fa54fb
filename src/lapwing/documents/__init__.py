"""Answers, previews and budgets as JSON documents, for programs; and read back from them by another Lapwing."""
