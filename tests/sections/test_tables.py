"""Settings refer to settings and values that exist, and have flags of their own."""

from __future__ import annotations

from corpusforge import sections


def test_conditions_of_settings_name_settings_and_values_that_exist() -> None:
    settings = sections.settings()
    for key, spec in settings.items():
        for decider, values in spec.only_with.items():
            assert decider in settings, key
            choices = settings[decider].choices
            assert not choices or set(values) <= set(choices), key
        for decider, value in spec.unless.items():
            assert type(settings[decider].default) is type(value), key
            assert value in settings[decider].choices or not settings[decider].choices, key


def test_every_flag_of_a_section_is_one_of_its_own() -> None:
    """No two settings of the sections of one command share a flag."""
    settings = sections.settings()
    for command, names in sections.READS.items():
        own = [section for section in names if command != "evaluate" or section == "evaluate"]
        flags = [spec.flag for key, spec in settings.items() if key.partition(".")[0] in own and spec.flag]
        assert len(flags) == len(set(flags)), command
