"""Entry point of `make bench`. Its options are environment variables.

ONLY=chain,starts selects workloads of `qa.bench.measurements`, ONLY=targets those of the summary. ROUNDS (3) is the
number of rounds, DURATION (8) the seconds in which each load starts runs, MINUTES the longest time of everything,
WARM_UP (60) the seconds of load on a JVM before the first round, and a sixth of it on this server. CONNECTIONS (16)
work, IDLE_POLLS (200) wait. JSON=FILE receives the results.

DB=sqlite measures the embedded profile; URL=http://host:port/api, with TOKEN, another server with Conductor's API;
WEB_WORKERS=2,4,8 numbers of web processes; BASE=COMMIT, or the folder of a checkout, the state before a change as well;
PEERS=1 other engines as well, or some of conductor-oss, django (this one in a project), django-tasks-db, dbos, celery,
temporal.

SCALE=10m compares the costs with many stored runs instead (`qa.bench.scale`).
"""

import os

from . import comparison, scale

if __name__ == "__main__":
    scale.main() if "SCALE" in os.environ else comparison.main()
