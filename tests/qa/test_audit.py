"""The audit fails on a known vulnerability only. The database is replaced by a program with recorded replies."""

import json
import sys

from qa.supply_chain.audit import main


def pip_audit(*replies: str) -> list[str]:
    """Return a command that prints one reply for one package, and another one for all packages."""
    one, all_packages = replies
    code = (
        f"import sys; lines = open(sys.argv[-1]).readlines(); print({one!r} if len(lines) == 1 else {all_packages!r})"
    )
    return [sys.executable, "-c", code]


def reply(**vulnerabilities: list) -> str:
    packages = [{"name": name, "version": "1.0", "vulns": found} for name, found in vulnerabilities.items()]
    return json.dumps({"dependencies": packages, "fixes": []})


def test_a_known_vulnerability_fails_the_audit(capsys):
    found = [{"id": "PYSEC-2026-1", "fix_versions": ["1.1"], "aliases": []}]

    assert main(pip_audit(reply(amqp=[]), reply(amqp=[], django=found))) == 1
    assert "django 1.0: PYSEC-2026-1, fixed in 1.1" in capsys.readouterr().out


def test_an_audit_without_findings_succeeds(capsys):
    assert main(pip_audit(reply(amqp=[]), reply(amqp=[], django=[]))) == 0
    assert "2 packages audited, 0 of them" in capsys.readouterr().out


def test_a_database_that_cannot_be_reached_does_not_fail_the_audit(capsys):
    assert main([sys.executable, "-c", "raise SystemExit('no network')"]) == 0
    assert "could not be reached" in capsys.readouterr().out


def test_a_database_without_any_of_the_packages_counts_as_not_reached(capsys):
    nothing = json.dumps({"dependencies": [{"name": "amqp", "skip_reason": "not found"}], "fixes": []})

    assert main(pip_audit(nothing, reply(django=[{"id": "X", "fix_versions": []}]))) == 0
    assert "could not be reached" in capsys.readouterr().out
