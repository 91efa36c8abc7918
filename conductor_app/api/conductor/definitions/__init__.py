"""Views and serializers of definitions, schemas, form templates, tags and test workflows."""
