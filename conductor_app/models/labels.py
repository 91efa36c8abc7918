"""Labels of runs, which people and clients use to find them."""

from typing import Any

from django.db import models
from django.db.models import Aggregate, OuterRef, QuerySet, Subquery

from .runs import Run

MAX_LABEL_LENGTH = 64


class JoinedTexts(Aggregate):
    """Aggregate that joins texts with commas, which labels cannot contain."""

    function = "GROUP_CONCAT"
    template = "%(function)s(%(expressions)s, ',')"
    output_field = models.TextField()

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        return self.as_sql(compiler, connection, function="STRING_AGG", **extra)


class RunLabel(models.Model):
    """One label of one run."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="labels", db_index=False)
    name = models.CharField(max_length=MAX_LABEL_LENGTH)

    class Meta:
        constraints = [models.UniqueConstraint(name="one_label_of_a_name_per_run", fields=["run", "name"])]
        # Ids of runs are time-ordered, so this index lists the newest runs of a label.
        indexes = [models.Index(name="run_label_by_name", fields=["name", "run"])]

    def __str__(self) -> str:
        return self.name


def with_labels(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Annotate the runs with their labels as one text, `label_names`."""
    labels = RunLabel.objects.filter(run=OuterRef("pk")).order_by().values("run").annotate(all=JoinedTexts("name"))
    # Run declares `label_names`, because callers get plain runs.
    return runs.annotate(label_names=Subquery(labels.values("all")))  # type: ignore[no-redef]  # see above
