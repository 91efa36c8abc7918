"""Tasks of Django's tasks framework. The tests import the module with their own setting TASKS."""

import asyncio
import importlib

import django
from django.contrib.auth.models import Group

framework = importlib.import_module("django.tasks" if django.VERSION >= (6, 0) else "django_tasks")
task = framework.task
seen: list[object] = []


@task
def noop(*args, **kwargs):
    seen.append((args, kwargs))


@task
async def double(number):
    await asyncio.sleep(0)
    return number * 2


@task
def describe(values):
    return {"given": values, "pair": (1, 2)}


@task
def fails(kind="ValueError"):
    raise {"ValueError": ValueError, "SystemExit": SystemExit, "KeyboardInterrupt": KeyboardInterrupt}[kind]("no")


@task
def returns_a_function():
    return len


@task(retries=2, retry_seconds=4)
def fails_at_first(until):
    seen.append(until)
    if len(seen) < until:
        raise ConnectionError(f"attempt {len(seen)}")
    return len(seen)


@task(takes_context=True, retries=1, retry_seconds=0)
def attempts(context, fails):
    result = context.task_result
    seen.append((context.attempt, result.id, result.status, len(result.errors)))
    if context.attempt == 1 and fails:
        raise ValueError("first")
    return context.attempt


@task(atomic=True)
def create_group(name, fails=False):
    Group.objects.create(name=name)
    if fails:
        raise ValueError(name)
    noop.enqueue(name)
    return name
