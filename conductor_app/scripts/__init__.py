"""Users' programs (JavaScript, Python, jq), always evaluated in helper processes that can be killed."""
