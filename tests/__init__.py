"""The suite: it mirrors `conductor_app`, and reads as its specification."""
