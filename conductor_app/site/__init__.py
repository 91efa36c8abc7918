"""What combines all capabilities: admin site, sidebar, palette, addresses of the API, OpenAPI document."""
