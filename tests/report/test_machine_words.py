from dbdyno.language.words import told
from dbdyno.report.numbers import found, what

CHINESE = {
    "kernel": "内核",
    "{logical} logical, {usable} usable": "{logical} 个逻辑核，可用 {usable} 个",
    "container": "容器",
    "virtual machine ({product})": "虚拟机（{product}）",
}


def test_english_says_what_was_stored():
    for text in (
        "4 logical, 2 usable",
        "ext4",
        "virtual machine (KVM), container",
        "unknown",
        "",
        "made, 4 cores",
    ):
        assert found(text) == text
    assert [what("kernel"), what("python")] == ["kernel", "python"]


def test_known_names_and_values_can_be_told_and_others_stay():
    assert told(what("kernel"), CHINESE) == "内核"
    assert told(what("python"), CHINESE) == "python"
    assert told(found("4 logical, 2 usable"), CHINESE) == "4 个逻辑核，可用 2 个"
    assert told(found("virtual machine (a b), container"), CHINESE) == "虚拟机（a b）, 容器"
    assert told(found("Intel(R) Xeon(R) CPU @ 2.20GHz"), CHINESE).startswith("Intel(R)")
