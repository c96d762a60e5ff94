"""The `fivedraw` command."""
