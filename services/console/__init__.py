"""The operators' web page: it sees what the signed-in person may see, and acts with that person's token alone."""
