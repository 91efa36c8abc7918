import os, pprint, pytest
from tests.engine.chance import Chance
import tests.engine.chance as ch
pytestmark = pytest.mark.django_db
def test_dbg(clock):
    orig=ch.differences
    def diff(a,b):
        d=orig(a,b)
        if d:
            import json
            print(json.dumps(c.story.row.plan.document))
            print(c.story.statuses); pprint.pprint(d)
            pprint.pprint(a['tasks'].keys())
        return d
    ch.differences=diff
    c=Chance(clock,int(os.environ['SEED'])); 
    try:
        c.live(30); c.finish()
    finally: ch.differences=orig
