"""Evaluation of scripts (JavaScript, Python, jq) in helper processes."""
