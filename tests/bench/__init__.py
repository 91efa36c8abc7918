"""`make bench`: how much the server does, measured over HTTP as workers use it."""
