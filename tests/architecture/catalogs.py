"""Reads a .po file as far as ours use the format: contexts, plurals, strings over several lines, fuzzy ones."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

PARAMETERS = re.compile(r"%\((\w+)\)[sdr]|\{(\w*)\}")


@dataclass
class CatalogEntry:
    """One text with what it is in another language, a form for each plural."""

    is_fuzzy: bool = False
    context: str | None = None
    original: str = ""
    plural: str | None = None
    translation: dict[int, str] = field(default_factory=dict)

    def take(self, keyword: str, more: str) -> None:
        """One line of a string, which may have begun before."""
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
        """What the compiled catalog holds of it, by its keys."""
        if not self.is_translated:
            return {}
        key = self.original if self.context is None else f"{self.context}\x04{self.original}"
        return (
            {key: self.translation[0]}
            if self.plural is None
            else {(key, at): translation for at, translation in self.translation.items()}
        )

    def has_same_parameters(self) -> bool:
        """Whether each form names the parameters of the original; a singular may leave out its number."""
        allowed = parameters(self.original) | parameters(self.plural or "")
        needed = allowed if self.plural is None else set()
        return not self.is_translated or all(
            needed <= parameters(translation) <= allowed and is_formattable(self.original, translation)
            for translation in self.translation.values()
        )


def parameters(text: str) -> set[str]:
    return {"".join(map(str, filter(None, found))) for found in PARAMETERS.findall(text)}


def is_formattable(original: str, translation: str) -> bool:
    """A lone % breaks a text that is filled in by %."""
    return "%(" not in original or "%" not in re.sub(r"%\(\w+\)[sdr]|%%", "", translation)


def entries(text: str) -> Iterator[CatalogEntry]:
    """The entries of a catalog, without its header and without what is obsolete."""
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
