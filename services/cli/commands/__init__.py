"""The commands of `fivedraw` that start or call a house."""
