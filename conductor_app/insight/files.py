"""The files of a run, as pages list them."""

from collections.abc import Sequence

from ..models import FileHandle

MAX_FILES = 100


def files_of(run_id: str) -> Sequence[FileHandle]:
    """The files of a run, the newest first."""
    return FileHandle.objects.filter(run_id=run_id).defer("parts").order_by("-created_at", "id")[:MAX_FILES]
