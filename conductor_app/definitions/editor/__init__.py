"""The editor of definitions: text, canvas and forms of steps."""
