"""The app that only the server has: its management commands. Another Django project has those of `management`."""
