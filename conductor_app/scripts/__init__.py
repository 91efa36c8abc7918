"""Users' programs (JavaScript, jq), always evaluated in helper processes that can be killed."""
