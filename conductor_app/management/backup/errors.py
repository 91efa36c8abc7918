"""Errors of backups and restores, with texts for the operator."""


class BackupRefused(Exception):
    """The backup or the restore was not possible. Nothing was changed."""


class RestoreIncomplete(Exception):
    """The database was replaced, but not all payloads."""


class ArchiveDamaged(BackupRefused):
    """The archive is truncated or was changed after the backup."""


class KeysMissing(BackupRefused):
    """The server does not have the keys that the archive needs."""
