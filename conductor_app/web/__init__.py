"""What HTTP and pages share: the server adapter, middleware, base views, forms, charts, tags."""
