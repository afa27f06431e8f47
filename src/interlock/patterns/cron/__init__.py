"""`CronScheduler`: jobs on a clock.

What lives here: schedules and time zones, which firings are due, merged or missed, and what is
stored about each job. What does not: running them. Every firing is a task of a Runtime, one firing
of a job at a time is an exclusive claim, and the run is renewed through `runtime/hosting`.

Start with `cron.py`. `schedule.py` and `zone.py` say when a job is due, `due.py` what to do about
it, `jobs.py` holds the jobs, `job_state.py` what is stored, `firings.py` what is under way,
`restore.py` what an earlier process left, `cron_run.py` the run itself.
Special words: a *firing* is one time that a job runs; firings are *merged* when one stands for
several, and *missed* when the grace was over; an *anchor* is where an interval is counted from.
"""
