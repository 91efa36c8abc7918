"""JSONPath in the dialect of Jayway 2.4, which Conductor's expressions are written in."""

from .jsonpath_errors import BadPath
from .parser import compile_path
from .path import Path
from .reading import ABSENT

__all__ = ["ABSENT", "BadPath", "Path", "compile_path"]
