"""Test suite, with one folder for each package of `conductor_app`."""
