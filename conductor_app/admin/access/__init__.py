"""Access: people, applications, Taskcluster's clients, secrets."""
