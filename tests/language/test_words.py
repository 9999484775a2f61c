import copy
import pickle

import pytest
from pydantic import BaseModel, ConfigDict

from dbdyno.language.words import LISTS, Said, Text, count, listed, name, phrase, say, translated

DOUBLE = {
    "{count} trials of {system}": "{system}: {count} 次试验",
    "{count} sound blocks": "{count} 个可用区组",
    "{first}, {rest}": "{first}、{rest}",
    "void": "无效",
}


class Noun(BaseModel):
    model_config = ConfigDict(frozen=True)
    text: Text
    more: tuple[Text, ...] = ()


def test_what_is_said_is_english_text_like_any_other():
    text = say("{count} trials of {system}", count=3, system="mysql:8.0.15")
    assert text == "3 trials of mysql:8.0.15"
    assert f"{text}!" == "3 trials of mysql:8.0.15!"
    assert text.endswith("8.0.15")


def test_it_is_told_in_another_language_with_its_values_in_that_languages_order():
    text = say("{count} trials of {system}", count=3, system="mysql:8.0.15")
    assert translated(text, DOUBLE) == "mysql:8.0.15: 3 次试验"


def test_parts_that_were_said_are_told_too_and_names_stay():
    whole = say("{count} trials of {system}", count=say("void"), system="void")
    assert translated(whole, DOUBLE) == "void: 无效 次试验"


def test_a_list_is_told_part_by_part():
    parts = [say("void"), "plain", say("void")]
    assert listed(parts) == "void, plain, void"
    assert translated(listed(parts), DOUBLE) == "无效、plain、无效"
    assert listed(parts, "; ") == "void; plain; void"
    assert listed([]) == ""
    assert all(listed(["a", "b"], sign).template in LISTS for sign in (", ", "; ", " "))


def test_a_count_has_a_plural_in_english_and_one_template():
    assert [count(number, "sound block") for number in (0, 1, 2, 1200)] == [
        "0 sound blocks",
        "1 sound block",
        "2 sound blocks",
        "1\u202f200 sound blocks",
    ]
    assert translated(count(1, "sound block"), DOUBLE) == "1 个可用区组"
    whole = say("{count} trials of {system}", count=count(1, "sound block"), system="a")
    assert whole == "1 sound block trials of a"
    assert translated(copy.copy(whole), DOUBLE) == "a: 1 个可用区组 次试验"


def test_a_name_stays_in_every_language():
    assert name("void") == "void"
    assert translated(name("void"), DOUBLE) == "void"
    assert translated(name("{system}"), DOUBLE) == "{system}"
    assert translated(name(say("void")), DOUBLE) == "无效"


def test_a_phrase_is_said_when_its_values_are_known():
    found = phrase("{count} trials of {system}")
    assert translated(say(found, count=1, system="a"), DOUBLE) == "a: 1 次试验"


def test_what_no_catalogue_has_stays_english():
    assert translated(say("unheard of: {x:.1%}", x=0.5), DOUBLE) == "unheard of: 50.0 %"
    assert translated("plain", DOUBLE) == "plain"


def test_braces_in_values_are_no_templates():
    text = say("found {what}", what="{system}")
    assert translated(text, {"found {what}": "有 {what}"}) == "有 {system}"


def test_a_missing_value_is_an_error_at_once():
    with pytest.raises(KeyError):
        say("{count} trials")


def test_nouns_copies_and_pickles_keep_what_was_said():
    noun = Noun(text=say("void"), more=(say("void"), "plain"))
    for kept in (noun, copy.deepcopy(noun), pickle.loads(pickle.dumps(noun))):
        assert isinstance(kept.text, Said)
        assert translated(kept.text, DOUBLE) == "无效"
        assert translated(kept.more[1], DOUBLE) == "plain"
    assert noun.model_dump_json() == '{"text":"void","more":["void","plain"]}'
    assert Noun.model_validate_json(noun.model_dump_json()).text == "void"


def test_a_long_list_is_translated_as_a_short_list() -> None:
    numbers = list(map(str, range(5_000)))
    chinese = translated(listed(numbers), {"{first}, {rest}": "{first}、{rest}"})
    assert chinese == "、".join(numbers)
