"""One class an address, three sentences each: parse, command, render."""
