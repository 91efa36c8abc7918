-- What sweeps and built-in workers look for. `runs/store/due_rows.py` executes these
-- statements. SQLite uses a partial index only if the statement repeats the condition of the index literally.

-- fragment: scheduler_is_running
NOT EXISTS (SELECT 1 FROM conductor_scheduler WHERE is_paused)

-- fragment: slot_can_start
-- If runs of a schedule wait for one another, only the earliest slot qualifies.
e.state = 'POLLED'
AND EXISTS (SELECT 1 FROM conductor_schedule s WHERE s.name = e.schedule_name AND NOT s.is_paused)
AND NOT (e.waits_for_others AND (
    EXISTS (SELECT 1 FROM conductor_run r
        WHERE r.schedule = e.schedule_name AND NOT (r.schedule = '') AND r.status IN ('PAUSED', 'RUNNING'))
    OR EXISTS (SELECT 1 FROM conductor_scheduleexecution o WHERE o.state = 'POLLED'
        AND o.schedule_name = e.schedule_name AND (o.slot_at, o.id) < (e.slot_at, e.id))))
AND {scheduler_is_running}

-- name: due_attempts
-- Find the open attempts with a due timer, the longest overdue first.
-- index: attempt_with_timer
SELECT COALESCE(run_id, ''), CASE WHEN run_id IS NULL THEN task_id ELSE '' END, id FROM conductor_attempt
WHERE status IN ('LEASED', 'PENDING') AND due_at < {never} AND due_at <= %(now)s ORDER BY due_at LIMIT %(limit)s

-- name: due_standalone_tasks
-- Find the standalone tasks whose deadline and its grace have passed, the longest overdue first.
-- index: standalone_to_wake
SELECT task_id FROM conductor_standalonetask
WHERE wake_at <= %(now)s AND wake_at < {never} ORDER BY wake_at LIMIT %(limit)s

-- name: due_runs
-- Find the open runs with a due timer, the longest overdue first.
-- index: run_to_wake
SELECT id FROM conductor_run
INDEXED BY run_to_wake -- sqlite
WHERE status IN ('PAUSED', 'RUNNING') AND wake_at <= %(now)s ORDER BY wake_at LIMIT %(limit)s

-- name: due_schedules
-- Find the schedules whose next slot is due, the longest overdue first.
-- index: schedule_due
SELECT id FROM conductor_schedule
WHERE next_run_at <= %(now)s AND {scheduler_is_running} ORDER BY next_run_at LIMIT %(limit)s

-- name: startable_slots
-- Find the waiting slots whose run can start now, earliest first.
-- index: execution_waiting
SELECT e.id FROM conductor_scheduleexecution e WHERE e.executed_at <= %(now)s AND {slot_can_start}
ORDER BY e.slot_at, e.id LIMIT %(limit)s

-- name: due_times
-- Find the earliest due time of each sweep, in the order of `due_rows.SWEEPS`.
-- index: attempt_with_timer, run_to_wake, message_due
SELECT
    (SELECT MIN(next_run_at) FROM conductor_schedule WHERE next_run_at IS NOT NULL AND {scheduler_is_running}),
    (SELECT MIN(e.executed_at) FROM conductor_scheduleexecution e WHERE {slot_can_start}),
    (SELECT MIN(due_at) FROM conductor_attempt WHERE status IN ('LEASED', 'PENDING') AND due_at < {never}),
    (SELECT MIN(wake_at) FROM conductor_standalonetask WHERE wake_at < {never}),
    (SELECT MIN(wake_at) FROM conductor_run
        INDEXED BY run_to_wake -- sqlite
        WHERE status IN ('PAUSED', 'RUNNING')),
    (SELECT MIN(due_at) FROM conductor_message WHERE NOT (subject = 'publish')),
    (SELECT MIN(at) FROM conductor_failure WHERE group_id IS NULL),
    (SELECT MIN(until) FROM conductor_budgethold)

-- fragment: due_work
EXISTS (SELECT 1 FROM conductor_attempt WHERE queue IN (%(queues)s) AND status = 'PENDING' AND NOT (queue = '')
    AND visible_at <= %(now)s)
OR EXISTS (SELECT 1 FROM conductor_message WHERE subject = 'publish' AND due_at <= %(now)s)
OR EXISTS (SELECT 1 FROM conductor_pulsemessage WHERE due_at <= %(now)s AND due_at < {never}),
EXISTS (SELECT 1 FROM conductor_bulkoperation WHERE state IN ({open_bulk_states})
    AND due_at <= %(now)s AND held_until <= %(now)s)

-- name: due_jobs
-- Ask which of the jobs "work" and "bulk" have something to do.
-- index: attempt_to_claim, message_to_publish, notice_due
SELECT {due_work}

-- name: due_jobs_and_model_calls
-- As `due_jobs`, and for the job "call_models".
-- index: attempt_to_claim, message_to_publish, notice_due
SELECT {due_work},
EXISTS (SELECT 1 FROM conductor_attempt WHERE queue IN (%(model_queues)s) AND status = 'PENDING' AND NOT (queue = '')
    AND visible_at <= %(now)s)

-- name: postpone_attempts
-- Set the timers of attempts, unless they are no longer due.
-- index: primary key of conductor_attempt
UPDATE conductor_attempt SET due_at = %(moment)s WHERE id IN (%(ids)s) AND due_at <= %(now)s

-- name: expired_slots
-- Find the slots that were handled before a time, oldest first. Waiting slots are kept.
-- index: execution_by_time
SELECT id FROM conductor_scheduleexecution WHERE executed_at < %(before)s AND state <> 'POLLED'
ORDER BY executed_at LIMIT %(limit)s

-- name: set_timers_of_run
-- Set the due timers of the attempts of a run.
-- index: attempt_of_run
UPDATE conductor_attempt SET due_at = %(moment)s
WHERE run_id = %(to)s AND status IN ('LEASED', 'PENDING') AND due_at <= %(due_before)s

-- name: set_timer_of_run
-- Set the due timer of a run.
-- index: primary key of conductor_run
UPDATE conductor_run SET wake_at = %(moment)s WHERE id = %(to)s AND wake_at <= %(due_before)s

-- name: set_timers_of_task
-- Set the due timers of the attempts of a standalone task.
-- index: one_attempt_per_task_and_number
UPDATE conductor_attempt SET due_at = %(moment)s
WHERE task_id = %(to)s AND status IN ('LEASED', 'PENDING') AND due_at <= %(due_before)s

-- name: set_timer_of_task
-- Set the due timer of a standalone task.
-- index: primary key of conductor_standalonetask
UPDATE conductor_standalonetask SET wake_at = %(moment)s WHERE task_id = %(to)s AND wake_at <= %(due_before)s

-- name: find_overdue_message
-- Find the message about due timers that could not be handled.
-- index: message_overdue
SELECT id, tries FROM conductor_message WHERE "to" = %(to)s AND subject = %(subject)s AND {is_overdue}
