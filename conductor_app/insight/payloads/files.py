"""Files of a run for the pages."""

from collections.abc import Sequence

from ...models import FileHandle

MAX_FILES = 100


def files_of(run_id: str) -> Sequence[FileHandle]:
    """Return the files of a run, newest first."""
    return FileHandle.objects.filter(run_id=run_id).defer("parts").order_by("-created_at", "id")[:MAX_FILES]
