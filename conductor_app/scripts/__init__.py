"""Evaluation of scripts (JavaScript, Python, jq) in helper processes, which can be killed."""
