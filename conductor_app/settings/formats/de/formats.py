"""German formats, with numbers in machine format.

A number in a template may be the geometry of a drawing, a data attribute or the value of a field, and must not become
1,5. Visible numbers go through the filters of `admin/tags.py`, which localize them.
"""

DECIMAL_SEPARATOR = "."
THOUSAND_SEPARATOR = ","
