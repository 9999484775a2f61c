from dbdyno.languages import FOLDER, Language, catalogue


def test_english_needs_no_catalogue():
    assert catalogue(Language.EN) == {}


def test_every_other_language_has_a_folder_of_catalogues_that_are_read_once():
    for language in Language:
        if language is not Language.EN:
            assert list((FOLDER / language).glob("*.po"))
            assert catalogue(language) is catalogue(language)


def test_a_page_names_the_script_too():
    assert [language.tag for language in Language] == ["en", "zh-Hans"]
