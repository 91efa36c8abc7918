"""The OpenAPI document of the API. No other request depends on it."""
