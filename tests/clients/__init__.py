"""The official clients against a live server, over HTTP."""
