"""`conductor-app schema`: print the JSON Schema of definitions in a folder, for completion in editors."""

import json
from typing import Any

from django.core.management.base import BaseCommand

from conductor_app.tools.importers.folders import folder_schema


class Command(BaseCommand):
    """Print the JSON Schema of definitions in YAML or JSON."""

    help = "Print the JSON Schema of definitions in YAML or JSON, for completion in editors."
    requires_system_checks = ()

    def handle(self, *args: object, **options: Any) -> None:
        self.stdout.write(json.dumps(folder_schema(), indent=2))
