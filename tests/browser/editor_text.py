"""The text of the definition editor, read and changed in the browser."""

from playwright.sync_api import Page


def text_of_editor(page: Page) -> str:
    """Return the text of the editor."""
    return page.evaluate('document.querySelector("[data-code-editor]").codeView.state.doc.toString()')


def replace_in_editor(page: Page, old: str, new: str, *, has_focus: bool = True) -> None:
    """Replace the first occurrence of a text, as typing there does. Without `has_focus`, the focus stays elsewhere."""
    page.evaluate(
        """([old, insert, hasFocus]) => {
            const view = document.querySelector("[data-code-editor]").codeView;
            const from = view.state.doc.toString().indexOf(old);
            const changes = { from, to: from + old.length, insert };
            view.dispatch(hasFocus ? { changes, selection: { anchor: from } } : { changes });
            if (hasFocus) view.focus();
        }""",
        [old, new, has_focus],
    )
