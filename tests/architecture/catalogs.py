"""Parse the subset of the .po format that our catalogs use: contexts, plurals, multi-line strings and fuzzy flags."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

PARAMETERS = re.compile(r"%\((\w+)\)[sdr]|\{(\w*)\}")


@dataclass
class CatalogEntry:
    """A message with its translations, one per plural form."""

    is_fuzzy: bool = False
    context: str | None = None
    original: str = ""
    plural: str | None = None
    translation: dict[int, str] = field(default_factory=dict)

    def take(self, keyword: str, more: str) -> None:
        """Add one line of a string, which can continue a previous line."""
        if keyword == "msgctxt":
            self.context = (self.context or "") + more
        elif keyword == "msgid":
            self.original += more
        elif keyword == "msgid_plural":
            self.plural = (self.plural or "") + more
        else:
            form = int(keyword[7:-1]) if "[" in keyword else 0
            self.translation[form] = self.translation.get(form, "") + more

    @property
    def is_translated(self) -> bool:
        return bool(self.original) and all(self.translation.values()) and not self.is_fuzzy

    def compiled_entries(self) -> dict:
        """Return the entries of the compiled catalog for this message, by their keys."""
        if not self.is_translated:
            return {}
        key = self.original if self.context is None else f"{self.context}\x04{self.original}"
        return (
            {key: self.translation[0]}
            if self.plural is None
            else {(key, at): translation for at, translation in self.translation.items()}
        )

    def has_same_parameters(self) -> bool:
        """Return whether each form uses the parameters of the original. A singular form may omit its number."""
        allowed = parameters(self.original) | parameters(self.plural or "")
        needed = allowed if self.plural is None else set()
        return not self.is_translated or all(
            needed <= parameters(translation) <= allowed and is_formattable(self.original, translation)
            for translation in self.translation.values()
        )


def parameters(text: str) -> set[str]:
    return {"".join(map(str, filter(None, found))) for found in PARAMETERS.findall(text)}


def is_formattable(original: str, translation: str) -> bool:
    """Return whether the texts can be formatted by %: a lone % breaks the formatting."""
    return "%(" not in original or "%" not in re.sub(r"%\(\w+\)[sdr]|%%", "", translation)


def entries(text: str) -> Iterator[CatalogEntry]:
    """Yield the entries of a catalog, without its header and obsolete entries."""
    entry, keyword = CatalogEntry(), ""
    for line in text.splitlines():
        if line.startswith(("msgctxt", "msgid ", "#")) and entry.translation:
            yield from [entry] if entry.original else []
            entry = CatalogEntry()
        if line.startswith("#,") and "fuzzy" in line:
            entry.is_fuzzy = True
        elif line.startswith(("msg", '"')):
            word, _, string = line.partition('"')
            keyword = word.strip() or keyword
            entry.take(keyword, ast.literal_eval(f'"{string}'))
    yield from [entry] if entry.original and entry.translation else []
