"""Settings, from code and from the environment."""

from datetime import timedelta

import pytest

from slackwater import Settings, Tempo
from slackwater.errors import ConfigurationError


def test_an_empty_environment_gives_the_defaults() -> None:
    assert Settings.from_environment({"PATH": "/bin"}) == Settings()


def test_each_kind_of_value_is_read() -> None:
    tempo = "2026-01-01T00:00:00+00:00/2026-01-01T01:30:00+01:00/97.5"
    found = Settings.from_environment(
        {
            "SLACKWATER_STORE_URL": "postgresql:///books",
            "SLACKWATER_TEMPO": tempo,
            "SLACKWATER_PROBE_EVERY": "0.5",
            "SLACKWATER_PUBLISH_BATCH": "7",
            "SLACKWATER_TEST_RABBITMQ": "of the tests alone",
        }
    )
    assert found == Settings(
        store_url="postgresql:///books",
        tempo=Tempo.parse(tempo),
        probe_every=timedelta(seconds=0.5),
        publish_batch=7,
    )


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("SLACKWATER_PROBE_EVRY", "1", "did you mean SLACKWATER_PROBE_EVERY?"),
        ("SLACKWATER_QQQQQQQQQQQQQQQQQQQQQQQQQ", "1", "known: SLACKWATER_STORE_URL"),
        ("SLACKWATER_PROBE_EVERY", "soon", "SLACKWATER_PROBE_EVERY='soon'"),
        ("SLACKWATER_PROBE_EVERY", "inf", "SLACKWATER_PROBE_EVERY='inf'"),
        ("SLACKWATER_PROBE_EVERY", "nan", "SLACKWATER_PROBE_EVERY='nan'"),
        ("SLACKWATER_PROBE_EVERY", "0", "probe_every: must be at least 0.1 s"),
        ("SLACKWATER_PUBLISH_BATCH", "0", "publish_batch: must be at least 1"),
        ("SLACKWATER_PUBLISH_BATCH", "many", "SLACKWATER_PUBLISH_BATCH='many'"),
        ("SLACKWATER_TEMPO", "fast", "a tempo reads RUN_ORIGIN/CALENDAR_ORIGIN/RATE"),
        ("SLACKWATER_PRESENCE_LIVES_FOR", "3", "must be at least twice presence_every"),
    ],
)
def test_a_value_that_cannot_be_is_named(name: str, value: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Settings.from_environment({name: value})
    assert said in str(refused.value)
    assert len(refused.value.findings) == 1


def test_all_unknown_names_are_told_at_once() -> None:
    with pytest.raises(ConfigurationError) as refused:
        Settings.from_environment({"SLACKWATER_TEMPOO": "", "SLACKWATER_STORE": ""})
    assert len(refused.value.findings) == 2
