"""Entry point of `make reference`: write the generated blocks of the pages of docs/reference."""

import os

import django


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "conductor_app.settings.testing")
    django.setup()
    from tests.documentation.reference.assistants import assistant_files
    from tests.documentation.reference.pages import FOLDER, generated_pages, refresh

    for path in generated_pages():
        present = path.read_text()
        if (fresh := refresh(present)) != present:
            path.write_text(fresh)
            print(f"{path.relative_to(FOLDER.parents[1])} was updated.")
    for path, text in assistant_files().items():
        path.write_text(text)


main()
