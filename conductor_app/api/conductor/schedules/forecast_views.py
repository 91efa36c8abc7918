"""View of the next slots of a schedule."""

from django.http import HttpResponse

from .... import clock
from ....insight.schedules.schedule_forecast import upcoming_slots
from ..api_operation import ApiOperation
from ..openapi import insight_tables
from ..permissions import can_view_schedule
from ..replies import Json
from ..view import ConductorRequest, ConductorView
from .schedule_views import find_schedule

MAX_SLOTS = 100


class ScheduleForecast(ConductorView):
    """GET /api/insight/schedules/{name}/forecast: list the next `count` slots, with notes on clock changes."""

    operations = {
        "get": ApiOperation(
            "Forecast the slots of a schedule",
            permission=can_view_schedule,
            reply=insight_tables.FORECAST,
            query={"count": int},
        ),
    }

    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        schedule = find_schedule(name)
        count = min(max(request.query.integer("count", 10), 1), MAX_SLOTS)
        slots = upcoming_slots(schedule.document, clock.now(), count)
        return Json(
            {
                "name": schedule.name,
                "isPaused": schedule.is_paused,
                "slots": [
                    {
                        "at": slot.at,
                        "local": slot.local,
                        "zoneId": slot.zone_id,
                        **({"note": slot.note} if slot.note else {}),
                    }
                    for slot in slots
                ],
            }
        )
