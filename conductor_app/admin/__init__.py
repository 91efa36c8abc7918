"""The operators' pages: one module per screen, one folder per group of screens, all in one AdminSite (`site.py`).

    runs/          list, page, tabs, timeline, history, comparison, retention
    tasks/         attempts, task panel, human tasks             bulk/       planner, selected runs, bulk operations
    definitions/   list, editor, versions, bundles, simulator, start form
    queues/        queues, workers, why a task waits             failures/   failure groups
    schedules/     schedules, calendar, periodic tasks           events/     events, handlers, replays, webhooks
    monitoring/    overview, saved views, alerts, sweeps, system
    standalone/    Taskcluster's groups, tasks, artifacts        access/     users, applications, clients, secrets

Modules that several screens share:

    sidebar.py        sections and entries of the sidebar       pages.py object_pages.py   base classes of pages
    read_only.py      lists of rows that the engine writes      fragments.py      parts that refresh (204 if unchanged)
    palette.py        command palette (Ctrl-K) and its sources  error_messages.py missing permissions, rejected requests
    documents.py      JSON as a tree, large JSON as a file      preferences.py choices.py  preferences of a user
    error_pages.py    pages for the statuses 400, 403, 404, 500
    user_locale.py    language and time zone of the user; all page texts go through gettext
    audit_log.py audit_objects.py  the audit log, and the objects that its entries link to
    badges.py tags.py   {{ status|badge }} {{ time|ago }} {{ begin|lasting:end }} {{ ms|span }} {% icon "queues" %} …
    layout_tags.py      breadcrumbs, labeled values, form fields, action menus: markup that pages repeat

    templates/ops/states/   filtered · error · forbidden · gone: what a panel shows when it has no content
    static/ops/design.css   the design: text sizes, colors, statuses, cards, tables, buttons and fields
    static/ops/ops.css      frame, palette, lists, narrow screens; a screen may have its own file
    static/ops/live.js      data-live, data-load, data-select: see its header    page.js   relative times, keys, palette
"""
