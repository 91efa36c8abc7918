import os, pprint, pytest, json, traceback, time
from collections import Counter
from django.db import transaction
from tests.engine.chance import Chance
from tests.story import forget_all_that_was_seen
import tests.engine.chance as ch
from conductor_app.models import Run
pytestmark = pytest.mark.django_db
def test_dbg(clock):
    orig=ch.differences
    def diff(x,y):
        d=orig(x,y)
        if d and os.environ.get('TB'):
            print(json.dumps(Run.objects.filter(name='order').first().plan.document)); pprint.pprint(d,width=200)
        return d
    ch.differences=diff
    a,b=map(int,os.environ.get('SEEDS','0-0').split('-'))
    c=None; n=Counter(); bad=[]
    for seed in range(a,b):
        forget_all_that_was_seen()
        try:
            with transaction.atomic():
                c=Chance(clock,seed); c.live(30); c.finish()
                n['ok '+c.story.status]+=1; n['compared']+=c.compared; n['whole']+=c.read_whole
                if Run.objects.filter(name="cleanup").count()!=c.bad_ends: bad.append((seed,'cleanup'))
                raise ZeroDivisionError
        except ZeroDivisionError: pass
        except BaseException as e:
            bad.append((seed,repr(e)[:300])); n['bad']+=1
            if os.environ.get('TB'): traceback.print_exc()
    print(n); pprint.pprint(bad[:20])
