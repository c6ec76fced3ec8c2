"""What the documents show is true: configurations validate, and links lead to something."""

import re

import pytest
from servers import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ENVIRONMENT = {"OPENAI_API_KEY": "sk-example", "WEIR_SECRET": "0123456789abcdef0123456789abcdef"}


def is_configuration(block):
    """Whether it is a whole one: the others explain a part."""
    return re.search(r"^limits:", block, re.M)


def configurations(page):
    blocks = re.findall(r"^```yaml\n(.*?)^```$", page.read_text(), re.M | re.S)
    return [block for block in blocks if is_configuration(block)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_configurations_validate(page, weir_command, tmp_path):
    path = tmp_path / "weir.yaml"
    for block in configurations(page):
        path.write_text(block)
        run = weir_command("validate", path, env=ENVIRONMENT)
        assert run.returncode == 0, run.stderr + block


def test_every_limiter_that_one_comes_from_has_a_configuration():
    page = ROOT / "docs" / "coming-from.md"
    sections = page.read_text().split("\n## ")[1:]
    assert len(sections) == 7
    assert len(configurations(page)) == 7
    assert all(section.count("```yaml") == 1 for section in sections)


@pytest.mark.parametrize(("page", "example"), [("forward-auth", "forward-auth"), ("grpc", "rate-limit-service")])
def test_pages_show_their_example(page, example):
    shown = configurations(ROOT / "docs" / f"{page}.md")
    assert len(shown) == 1
    assert (ROOT / "examples" / f"{example}.yaml").read_text().endswith(shown[0])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text(), re.M)
            anchors = [re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings]
            assert anchor in anchors, target
