"""The film of the README: a browser plays it, and it is small."""

from base64 import b64encode
from pathlib import Path

import pytest

FILMS = sorted((Path(__file__).parents[2] / "docs" / "images").glob("film-*.webp"))
MAX_BYTES = 500_000
LOADED = """async (address) => {
  const image = new Image();
  image.src = address;
  await image.decode();
  return [image.naturalWidth, image.naturalHeight];
}"""


@pytest.mark.parametrize("film", FILMS, ids=lambda path: path.stem)
def test_a_browser_plays_the_film_of_the_readme(browser, film):
    page = browser.new_page()

    size = page.evaluate(LOADED, f"data:image/webp;base64,{b64encode(film.read_bytes()).decode()}")
    page.close()

    assert size == [1280, 800]
    assert film.read_bytes().count(b"ANMF") == 5
    assert film.stat().st_size < MAX_BYTES


def test_the_film_is_there_in_both_themes():
    assert [film.stem for film in FILMS] == ["film-dark", "film-light"]
