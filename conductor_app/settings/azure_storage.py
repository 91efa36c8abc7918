"""A container of Azure Blob Storage, with the folders and the errors of Django's other storages."""

from typing import Any

from azure.core.exceptions import ResourceNotFoundError
from storages.backends.azure_storage import AzureStorage


class AzureContainer(AzureStorage):
    """The storage of django-storages, whose files are opened late and whose lists have no folders."""

    def _open(self, name: str, mode: str = "rb") -> Any:
        content = super()._open(name, mode)
        try:
            _ = content.file
        except ResourceNotFoundError:
            raise FileNotFoundError(f"File does not exist: {name}") from None
        return content

    def listdir(self, path: str = "") -> tuple[list[str], list[str]]:
        """Return the names of the folders and files in a folder."""
        prefix = f"{self._get_valid_path(path)}/"
        names = [each.name.removeprefix(prefix) for each in self.client.walk_blobs(name_starts_with=prefix)]
        return [name.rstrip("/") for name in names if name.endswith("/")], [n for n in names if not n.endswith("/")]
