"""German, with the numbers of machines.

A number in a template may be the geometry of a drawing, a data attribute or what a field holds: it must not turn into
1,5. What people read goes through the filters of `admin/tags.py`, which write it as the language does.
"""

DECIMAL_SEPARATOR = "."
THOUSAND_SEPARATOR = ","
