"""Imports of definitions from other servers: read them, plan what changes here, save them as the APIs would."""
