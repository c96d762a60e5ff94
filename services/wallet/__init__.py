"""The wallet service: a double-entry ledger of every chip."""
