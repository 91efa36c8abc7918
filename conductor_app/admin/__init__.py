"""The operators' pages: a screen family a module, everything inside one AdminSite (`site.py`).

What screens share:

    sidebar.py      what stands at the side, in order            pages.py        a page that is no list of one table
    read_only.py    lists that nobody types into                 fragments.py    parts that follow what they show (204)
    palette.py      Ctrl-K: a table of sources                   refusals.py     the missing permission, a way out
    actions.py      what may be done to a run, as a table        documents.py    JSON as a tree, large JSON as a file
    marks.py tags.py   {{ status|badge }} {{ moment|ago }} {{ begin|lasting:end }} {{ ms|span }} {% icon "queues" %} …
    preferences.py  the reader's zone and other choices

    templates/ops/states/   empty · filtered · error · forbidden · gone: what a panel says when it has nothing to show
    static/ops/ops.css      colours, words, cards, tables, buttons, lists; a screen may have its own file
    static/ops/live.js      data-live, data-load, data-select: see its head      page.js   counting times, keys, palette
"""
