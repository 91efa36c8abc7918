"""One class an address: parse, command, render."""
