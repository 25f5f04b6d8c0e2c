"""What the product is made of is written down as it is, and may be passed on."""

from tools.make_supply import LOCK, components, made


def test_the_bill_of_materials_is_current() -> None:
    for path, text in made().items():
        assert path.read_text("utf-8") == text, "run: python tools/make_supply.py"


def test_every_licence_is_known_and_may_be_passed_on() -> None:
    found = list(components(LOCK.read_text("utf-8")))
    assert len(found) > 40
    # In a browser (Emscripten) nothing of this can run.
    ours = [each for each in found if "sys_platform == 'emscripten'" not in each.condition]
    assert [each.name for each in ours if not each.is_free] == []
