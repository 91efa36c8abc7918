"""The operators' pages: a screen a module, a family of screens a folder, everything inside one AdminSite (`site.py`).

    runs/          list, page, tabs, timeline, task panel, comparison
    fixing/        planner, one action on many runs, bulk operations
    definitions/   list, editor, versions, bundles, simulator, start form
    schedules/     what starts by the clock                      events/     what came in, handlers, replays, webhooks
    watching/      overview, queues, workers, failures, views
    alone/         Taskcluster's groups, tasks, artifacts         access/     people, applications, clients, secrets
    upkeep/        audit, retention, sweeps, system

What screens share stands here:

    sidebar.py      what stands at the side, in order            pages.py        a page that is no list of one table
    read_only.py    lists that nobody types into                 fragments.py    parts that follow what they show (204)
    palette.py      Ctrl-K: a table of sources                   refusals.py     the missing permission, a way out
    documents.py    JSON as a tree, large JSON as a file         preferences.py choices.py   what the reader has chosen
    not_shown.py    a whole page that is not there, not open, or broke
    reader.py       the reader's language and zone: every text of a page goes through gettext, see `make messages`
    marks.py tags.py   {{ status|badge }} {{ moment|ago }} {{ begin|lasting:end }} {{ ms|span }} {% icon "queues" %} …

    layout_tags.py  breadcrumbs, labeled values, form fields, action menus: markup that many pages repeat
    templates/ops/states/   filtered · error · forbidden · gone: what a panel says when it has nothing to show
    static/ops/ops.css      colours, words, cards, tables, buttons, lists; a screen may have its own file
    static/ops/live.js      data-live, data-load, data-select: see its head      page.js   counting times, keys, palette
"""
