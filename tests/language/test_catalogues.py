from dbdyno.language.catalogues import FOLDER, Language, catalogue, said_in
from dbdyno.language.words import name, say


def test_english_needs_no_catalogue():
    assert catalogue(Language.EN) == {}


def test_every_other_language_has_a_folder_of_catalogues_that_are_read_once():
    for language in Language:
        if language is not Language.EN:
            assert list((FOLDER / language).glob("*.po"))
            assert catalogue(language) is catalogue(language)


def test_a_page_names_the_script_too():
    assert [language.tag for language in Language] == ["en", "zh-Hans"]


def test_a_text_is_told_and_chinese_has_no_space_within():
    text = say("{metric} of {system} against {baseline}", metric="p95", system="a", baseline="b")
    assert said_in(text, Language.EN) == text
    assert said_in(text, Language.ZH) == "a 相对 b 的 p95"
    assert (
        said_in(say("{system} ({setting})", system="生产", setting="a"), Language.ZH) == "生产（a）"
    )


def test_chinese_has_one_word_for_one_thing():
    """Those of the glossary at the head of judge.po, and none of these beside them."""
    said = " ".join(catalogue(Language.ZH).values())
    for word, others in {"基线": ["基准"], "压测端": ["负载发生器"]}.items():
        assert word in said
        assert [other for other in others if other in said] == []
    assert "设置" not in said
    assert "次运行" not in said.replace("再次运行", "")


def test_names_and_what_was_not_said_stay_as_they_are():
    assert said_in(name("生产 库"), Language.ZH) == "生产 库"
    assert said_in("Verdicts", Language.ZH) == "Verdicts"
