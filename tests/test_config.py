"""The nearest file decides, the command line beats it, and what is wrong is said in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import jsonschema  # type: ignore[import-untyped]
import pytest
import tomli
import toys

from torchlint import configfile, regular, userfolder
from torchlint.config import Config, ConfigError, Configs, Overrides, schema
from torchlint.registry import all_rules, choose, find
from torchlint.report import FORMATS
from torchlint.rule import Rule
from torchlint.settings import Settings

SCHEMA = Path(__file__).parents[1] / "torchlint" / "torchlint.schema.json"
TOYS = {"often": Rule("often", "TL998", "toys", "A toy.", "0.1.0", options=(("min_calls", 3), ("share", 0.5)))}


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def config_in(folder: Path, cwd: Path | None = None, **overrides: Any) -> Config:  # noqa: ANN401 -- as `Overrides`
    return Configs(Overrides(**overrides), cwd or folder).for_directory(folder)


def rules_of(config: Config, path: str = "x.py") -> tuple[str, ...]:
    return config.settings_for(config.root / path).rules


def codes(config: Config) -> list[str]:
    return [find(name).code for name in rules_of(config)]


def defaults() -> tuple[str, ...]:
    return tuple(rule.name for rule in choose(None))


def hot_in(folder: Path, path: str) -> tuple[str, ...]:
    return Configs(Overrides(), folder).for_file(folder / path).settings_for(folder / path).hot


class TestHot:
    def test_an_entry_goes_to_the_files_that_it_names(self, tmp_path: Path) -> None:
        write(
            tmp_path, **{"train.py": "", "torchlint.toml": "hot = ['pkg.loop:Trainer.step', 'pkg:run', 'train.py:fit']"}
        )
        assert hot_in(tmp_path, "train.py") == ("fit",)
        assert hot_in(tmp_path, "a/train.py") == ()
        assert hot_in(tmp_path, "src/pkg/loop.py") == ("Trainer.step",)
        assert hot_in(tmp_path, "pkg/loop/__init__.py") == ("Trainer.step",)
        assert hot_in(tmp_path, "pkg/__init__.py") == ("run",)
        assert hot_in(tmp_path, "otherpkg/loop.py") == ()

    def test_a_file_is_named_from_the_folder_of_the_configuration(self, tmp_path: Path) -> None:
        write(
            tmp_path,
            **{
                "base/b.py": "",
                "base/torchlint.toml": "hot = ['b.py:f']",
                "torchlint.toml": "extend = 'base/torchlint.toml'",
            },
        )
        assert hot_in(tmp_path, "base/b.py") == ("f",)
        assert hot_in(tmp_path, "b.py") == ()

    def test_what_is_nearer_replaces_it(self, tmp_path: Path) -> None:
        write(tmp_path, **{"base.toml": "hot = ['b:f']", "torchlint.toml": "extend = 'base.toml'\nhot = ['b:g']"})
        assert hot_in(tmp_path, "b.py") == ("g",)


class TestTheFileThatCounts:
    def test_no_file_means_the_defaults(self, tmp_path: Path) -> None:
        config = config_in(tmp_path)
        assert config.file is None
        assert config.root == tmp_path
        assert config.cache_dir is None
        assert config.cache_folder == userfolder.of_project(tmp_path)
        assert config.settings_for(tmp_path / "x.py") == Settings(rules=defaults())

    def test_of_three_in_one_folder(self, tmp_path: Path) -> None:
        write(tmp_path, **{"pyproject.toml": "[tool.torchlint]\ndataloader-workers = 1"})
        assert config_in(tmp_path).dataloader_workers == 1
        write(tmp_path, **{"torchlint.toml": "dataloader-workers = 2"})
        assert config_in(tmp_path).dataloader_workers == 2
        write(tmp_path, **{".torchlint.toml": "dataloader-workers = 3"})
        config = config_in(tmp_path)
        assert config.dataloader_workers == 3
        assert config.file == tmp_path / ".torchlint.toml"

    @pytest.mark.parametrize("other", ["[tool.ruff]\n", "[project]\nname = 'torchlint'\n", "not TOML at all"])
    def test_a_pyproject_without_a_table_is_passed_over(self, tmp_path: Path, other: str) -> None:
        write(tmp_path, **{"torchlint.toml": "fix = true", "a/pyproject.toml": other})
        assert config_in(tmp_path / "a").file == tmp_path / "torchlint.toml"

    def test_the_nearest_one_wins_and_nothing_is_merged(self, tmp_path: Path) -> None:
        write(tmp_path, **{"torchlint.toml": "fix = true", "a/b/torchlint.toml": "preview = true"})
        configs = Configs(Overrides(), tmp_path)
        assert configs.for_file(tmp_path / "x.py").fix
        assert configs.for_file(tmp_path / "a" / "x.py") is configs.for_file(tmp_path / "x.py")
        below = configs.for_file(tmp_path / "a" / "b" / "c" / "x.py")
        assert below.preview
        assert not below.fix
        assert below.root == tmp_path / "a" / "b"

    def test_extend_inherits_and_what_is_nearer_wins(self, tmp_path: Path) -> None:
        base = "fix = true\ndataloader-workers = 2\nextend-exclude = ['x']\ncache-dir = 'cache'\npreview = true"
        own = "extend = '../base/pyproject.toml'\ndataloader-workers = 8\nextend-exclude = ['y']"
        table = "[tool.torchlint]\n"
        write(tmp_path, **{"base/pyproject.toml": table + base, "a/torchlint.toml": own})
        config = config_in(tmp_path / "a", tmp_path)
        assert (config.fix, config.dataloader_workers) == (True, 8)
        assert config.cache_dir == tmp_path / "base" / "cache"
        assert config.root == tmp_path / "a"
        assert config.excludes(str(tmp_path / "a/x"), "x")
        assert config.excludes(str(tmp_path / "a/y"), "y")
        assert config.sources == {
            "cache-dir": "base/pyproject.toml",
            "dataloader-workers": "a/torchlint.toml",
            "extend": "a/torchlint.toml",
            "extend-exclude": "a/torchlint.toml",
            "fix": "base/pyproject.toml",
            "preview": "base/pyproject.toml",
        }

    def test_patterns_are_relative_to_the_file_that_has_them(self, tmp_path: Path) -> None:
        write(tmp_path, **{"torchlint.toml": "exclude = ['a/gen/*.py']\n[per-file-ignores]\n'a/x.py' = ['ALL']"})
        write(
            tmp_path, **{"a/torchlint.toml": "extend = '../torchlint.toml'\n[extend-per-file-ignores]\n'y.py'=['ALL']"}
        )
        config = config_in(tmp_path / "a")
        assert config.excludes(str(tmp_path / "a/gen/x.py"), "x.py")
        assert not config.excludes(str(tmp_path / "a/a/gen/x.py"), "x.py")
        assert rules_of(config, "x.py") == rules_of(config, "y.py") == rules_of(config, "b/y.py") == ()
        assert rules_of(config, "a/x.py") == rules_of(config, "z.py") == defaults()

    @pytest.mark.parametrize("name", ["torchlint.toml", "other.toml"])
    def test_a_given_file_replaces_all_others_and_is_relative_to_the_working_directory(
        self, tmp_path: Path, name: str
    ) -> None:
        write(
            tmp_path, **{"torchlint.toml": "fix = true", f"ci/{name}": "extend-exclude = ['a/x.py']\ncache-dir = 'c'"}
        )
        config = config_in(tmp_path / "a", tmp_path, config=(f"ci/{name}",))
        assert config.file == tmp_path / "ci" / name
        assert config.root == tmp_path
        assert not config.fix
        assert config.excludes(str(tmp_path / "a/x.py"), "x.py")
        assert config.cache_dir == tmp_path / "c"

    def test_isolated_reads_no_file_but_hears_the_command_line(self, tmp_path: Path) -> None:
        write(tmp_path, **{"torchlint.toml": "not TOML"})
        config = config_in(tmp_path, isolated=True, config=("dataloader-workers = 9",), preview=True)
        assert (config.file, config.dataloader_workers, config.preview) == (None, 9, True)

    def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(self, tmp_path: Path) -> None:
        (tmp_path / "torchlint.toml").write_bytes(b"\xef\xbb\xbfselect = [\r\n  'TL301',\r\n]\r\nfix = true\r\n")
        config = config_in(tmp_path)
        assert config.fix
        assert codes(config) == ["TL301"]


class TestTheCommandLine:
    def test_a_flag_beats_a_key_and_that_a_file(self, tmp_path: Path) -> None:
        write(tmp_path, **{"torchlint.toml": "output-format = 'json'\nfix = true\nunsafe-fixes = true\npreview = true"})
        inline = ("output-format = 'sarif'", "fix = false")
        config = config_in(tmp_path, config=inline, output_format="github", unsafe_fixes=False)
        assert (config.output_format, config.fix, config.unsafe_fixes, config.preview) == ("github", False, False, True)
        assert config.sources == {
            "fix": "--config fix = false",
            "output-format": "--output-format",
            "preview": "torchlint.toml",
            "unsafe-fixes": "--unsafe-fixes",
        }

    def test_its_patterns_are_relative_to_the_working_directory(self, tmp_path: Path) -> None:
        write(tmp_path, **{"a/torchlint.toml": "exclude = ['y.py']\n[per-file-ignores]\n'z.py' = ['ALL']"})
        config = config_in(tmp_path / "a", tmp_path, exclude=("a/x.py",), per_file_ignores=("a/w.py:ALL",))
        assert config.excludes(str(tmp_path / "a/x.py"), "x.py")
        assert not config.excludes(str(tmp_path / "a/y.py"), "y.py")
        assert rules_of(config, "w.py") == ()
        assert rules_of(config, "z.py") == defaults()
        assert config_in(tmp_path, cache_dir="../c").cache_dir == tmp_path / "../c"

    def test_a_file_whose_name_looks_like_a_key_is_a_file(self, tmp_path: Path) -> None:
        write(tmp_path, **{"fix=false": "fix = true"})
        assert config_in(tmp_path, config=("fix=false",)).fix


class TestSelection:
    @pytest.mark.parametrize(
        ("text", "overrides", "expected"),
        [
            ("select = ['TL301', 'TL302']", {}, ["TL301", "TL302"]),
            (
                "select = ['TL30']\nignore = ['TL301', 'TL305', 'TL307']",
                {},
                ["TL302", "TL303", "TL304", "TL306", "TL308", "TL309"],
            ),
            ("select = ['sync']\nignore = ['TL']\nextend-select = ['TL303']", {}, ["TL303"]),
            ("select = ['item-in-train-loop']", {"extend_select": ("TL302",)}, ["TL301", "TL302"]),
            ("select = ['TL301', 'TL302']", {"ignore": ("TL3",)}, []),
            ("ignore = ['TL301']", {"select": ("TL301",)}, ["TL301"]),
            ("select = ['TL301']\nignore = ['TL303']", {"extend_select": ("TL303",)}, ["TL301", "TL303"]),
            ("select = []", {}, []),
            ("select = ['ALL']", {"select": ()}, []),
        ],
    )
    def test_later_sources_refine_earlier_ones_or_start_anew(
        self, tmp_path: Path, text: str, overrides: dict[str, Any], expected: list[str]
    ) -> None:
        write(tmp_path, **{"torchlint.toml": text})
        assert codes(config_in(tmp_path, **overrides)) == expected

    def test_ignore_alone_subtracts_from_the_defaults(self, tmp_path: Path) -> None:
        write(tmp_path, **{"torchlint.toml": "ignore = ['TL301']"})
        assert rules_of(config_in(tmp_path)) == tuple(name for name in defaults() if name != "item-in-train-loop")

    @pytest.mark.parametrize(
        ("pattern", "silent"),
        [
            ("x.py", {"x.py", "a/x.py", "tests/x.py"}),
            ("tests/**", {"tests/x.py", "tests/a/y.py"}),
            ("a/*.py", {"a/x.py"}),
            ("!tests/**", {"x.py", "a/x.py"}),
            ("!x.py", {"tests/a/y.py"}),
        ],
    )
    def test_per_file_ignores(self, tmp_path: Path, pattern: str, silent: set[str]) -> None:
        write(
            tmp_path,
            **{"torchlint.toml": f"select = ['TL301', 'TL302']\nper-file-ignores = {{ '{pattern}' = ['TL3'] }}"},
        )
        config = config_in(tmp_path)
        paths = ("x.py", "a/x.py", "tests/x.py", "tests/a/y.py")
        assert {path for path in paths if not rules_of(config, path)} == silent

    def test_several_ignores_of_one_file_add_up(self, tmp_path: Path) -> None:
        ignores = ("*.py:TL301", "x.py:TL302", "x.py:item-in-train-loop")
        config = config_in(tmp_path, select=("TL301", "TL302", "TL303"), per_file_ignores=ignores)
        assert rules_of(config, "x.py") == ("repeated-item",)
        assert rules_of(config, "y.py") == ("item-in-eval-loop", "repeated-item")
        assert config.settings_for(tmp_path / "y.py") is config.settings_for(tmp_path / "z.py")


class TestOptions:
    @pytest.fixture(autouse=True)
    def _toys(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(configfile, "find", lambda name: TOYS.get(name) or find(name))

    def test_they_reach_the_settings(self, tmp_path: Path) -> None:
        text = "target-torch = '2.10'\ndataloader-workers = 16\n[rules.often]\nmin-calls = 5\nshare = 1"
        write(tmp_path, **{"torchlint.toml": text})
        settings = config_in(tmp_path, config=("rules.often.min-calls = 7",)).settings_for(tmp_path / "x.py")
        assert settings.target_torch == (2, 10)
        assert settings.dataloader_workers == 16
        assert settings.option("often", "min_calls", 3) == 7
        assert settings.option("often", "share", 0.5) == 1.0
        assert hash(settings)

    @pytest.mark.parametrize(
        ("given", "chosen"), [("", True), ("target-torch = '2.4'", True), ("target-torch = '2.3'", False)]
    )
    def test_a_rule_needs_its_torch(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, *, chosen: bool
    ) -> None:
        new = Rule("new-advice", "TL101", "toys", "Toy.", "0.1.0", torch=(2, 4))
        monkeypatch.setattr(toys, "RULES", (toys.UNUSED, toys.READ, new))
        toys.install(monkeypatch)
        write(tmp_path, **{"torchlint.toml": given})
        assert ("new-advice" in config_in(tmp_path).settings_for(tmp_path / "x.py").rules) is chosen

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "[rules.often]\nmin-call = 5",
                "torchlint.toml:2: unknown key `min-call` in `rules.often`; did you mean `min-calls`?",
            ),
            (
                "[rules.often]\nmin-calls = true",
                "torchlint.toml:2: `rules.often.min-calls`: expected an integer, got a boolean; write `min-calls = 3`",
            ),
            (
                "rules.often.share = []",
                "torchlint.toml:1: `rules.often.share`: expected a float, got an array; write `share = 0.5`",
            ),
            ("rules.often = 3", "torchlint.toml:1: `rules.often`: expected a table, got an integer"),
            (
                "[rules.ofen]\nx = 1",
                "torchlint.toml:1: `rules`: unknown rule `ofen`; `torchlint rules` lists them",
            ),
        ],
    )
    def test_what_is_wrong_with_them(self, tmp_path: Path, text: str, message: str) -> None:
        write(tmp_path, **{"torchlint.toml": text})
        with pytest.raises(ConfigError) as caught:
            config_in(tmp_path)
        assert str(caught.value) == message


class TestErrors:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "[tool.torchlint]\n# slect\nslect = []",
                "3: unknown key `slect` in [tool.torchlint]; did you mean `select`?",
            ),
            ("[tool]\ntorchlint.slect = []", "2: unknown key `slect` in [tool.torchlint]; did you mean `select`?"),
            ("tool.torchlint = { slect = [] }", "1: unknown key `slect` in [tool.torchlint]; did you mean `select`?"),
            ("[tool.torchlint.slect]\n", "1: unknown key `slect` in [tool.torchlint]; did you mean `select`?"),
            (
                "[tool.torchlint]\nselect = 'TL301'",
                '2: `select`: expected an array, got a string; write `select = ["TL301"]`',
            ),
            ("\n\n[tool]\ntorchlint = 3", "4: `tool.torchlint`: expected a table, got an integer"),
            ("tool = [] # torchlint", "1: `tool`: expected a table, got an array"),
            ("[tool.torchlint]\nfix = true\nfix =", "3: invalid TOML: invalid value"),
        ],
    )
    def test_in_a_pyproject(self, tmp_path: Path, text: str, message: str) -> None:
        write(tmp_path, **{"pyproject.toml": text})
        with pytest.raises(ConfigError) as caught:
            config_in(tmp_path)
        assert str(caught.value) == f"pyproject.toml:{message}"

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("output_format = 'json'", "1: unknown key `output_format`; did you mean `output-format`?"),
            ("output-format = 'jsn'", '1: `output-format`: unknown value "jsn"; did you mean `json`?'),
            (
                "select = [\n  'TL301',\n  3,\n]",
                '1: `select[1]`: expected a string, got an integer; write `select = ["TL301"]`',
            ),
            (
                "dataloader-workers = 0",
                "1: `dataloader-workers`: expected an integer >= 1, got 0; write `dataloader-workers = 4`",
            ),
            (
                "target-torch = 2.4",
                '1: `target-torch`: expected a string, got a float; write `target-torch = "2.4"`',
            ),
            (
                "target-torch = '2'",
                '1: `target-torch`: expected a string such as "2.4", got "2"; write `target-torch = "2.4"`',
            ),
            ("fix = 'yes'", "1: `fix`: expected a boolean, got a string; write `fix = true`"),
            (
                "[per-file-ignores]\n'a/*' = ['ALL']\n'b/*' = 'ALL'",
                (
                    '3: `per-file-ignores."b/*"`: expected an array, got a string; '
                    'write `per-file-ignores = { "tests/**" = ["ALL"] }`'
                ),
            ),
            (
                "[per-file-ignores]\n'a/*' = ['ALL']\n'b/*' = ['item-in-trian-loop']",
                "3: `per-file-ignores`: unknown rule `item-in-trian-loop`; did you mean `item-in-train-loop`?",
            ),
            (
                "extend-exclude = [\n 'a',\n '{b',\n]",
                "3: `extend-exclude`: `{b` is not a pattern: a brace without its other half",
            ),
            (
                "hot = ['a.b:f', 'fit']",
                (
                    '1: `hot`: "fit" is no function of a file; '
                    "write `package.module:Class.method` or `path/from/here.py:function`"
                ),
            ),
            (
                "hot = [\n 'a.b:f',\n 'a.b:1x',\n]",
                (
                    '3: `hot`: "a.b:1x" is no function of a file; '
                    "write `package.module:Class.method` or `path/from/here.py:function`"
                ),
            ),
            ("hot = ['no.py:fit']", "1: `hot`: no such file `no.py`"),
            (
                "hot = 'a:f'",
                '1: `hot`: expected an array, got a string; write `hot = ["package.module:Class.method", "train.py:fit"]`',
            ),
            ("extend = 'no.toml'", "1: `extend`: no such file `no.toml`"),
            ("\nextend = 'torchlint.toml'", "2: `extend` goes in a circle: torchlint.toml extends torchlint.toml"),
            (
                "extend = 'a/pyproject.toml'",
                "1: `extend`: there is no [tool.torchlint] in `a/pyproject.toml`; leave it out",
            ),
            ("'a\\\\n' = 1\n\"b\\n\" = 2", None),
        ],
    )
    def test_in_a_file_of_its_own(self, tmp_path: Path, text: str, message: str | None) -> None:
        write(tmp_path, **{"torchlint.toml": text, "a/pyproject.toml": "[tool.other]"})
        with pytest.raises(ConfigError) as caught:
            config_in(tmp_path)
        assert "\n" not in str(caught.value)
        assert message is None or str(caught.value) == f"torchlint.toml:{message}"

    def test_the_row_is_that_of_the_key_that_counts_and_of_the_value_in_it(self, tmp_path: Path) -> None:
        other = "[other]\nselect = ['TL3999']\n# TL3999\n"
        own = "[tool.torchlint]\nignore = [\n  'TL301',\n]\nselect = [\n  'TL301',\n  # TL3999\n  'TL3999',\n]\n"
        write(tmp_path, **{"pyproject.toml": other + own + 'text = """\nselect = [\'TL3999\']\n"""'})
        with pytest.raises(ConfigError, match=r"^pyproject.toml:13: unknown key `text` in"):
            config_in(tmp_path)
        write(tmp_path, **{"pyproject.toml": other + 'text = """\nselect = [\'TL3999\']\n"""\n' + own})
        with pytest.raises(ConfigError, match=r"^pyproject.toml:14: `select`: unknown rule `TL3999`;"):
            config_in(tmp_path)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('[verify]\nentri = "train.py"\n', "2: unknown key `entri` in `verify`; did you mean `entry`?"),
            (
                '[verify]\nargs = "--fast"\n',
                '2: `verify.args`: expected an array, got a string; write `args = ["--epochs", "1"]`',
            ),
            ('[verify]\ndevice = "tpu"\n', '2: `verify.device`: unknown value "tpu"; did you mean `xpu`?'),
            ('[verify]\nbudget = "long"\n', 'expected a string such as "10m", got "long"; write `budget = "10m"`'),
            ("[verify]\nsteps = 0\n", "2: `verify.steps`: expected "),
            ("verify = 1\n", "1: `verify`: expected a table, got an integer; write `verify = "),
        ],
    )
    def test_in_the_table_verify(self, tmp_path: Path, text: str, message: str) -> None:
        write(tmp_path, **{"torchlint.toml": text})
        with pytest.raises(ConfigError) as raised:
            Configs(Overrides(), tmp_path).for_directory(tmp_path)
        assert message in str(raised.value)

    def test_a_circle_of_several_files(self, tmp_path: Path) -> None:
        write(
            tmp_path,
            **{"a/torchlint.toml": "extend = '../b.toml'", "b.toml": "fix = true\nextend = 'a/torchlint.toml'"},
        )
        with pytest.raises(ConfigError) as caught:
            config_in(tmp_path / "a", tmp_path)
        circle = "a/torchlint.toml extends b.toml extends a/torchlint.toml"
        assert str(caught.value) == f"b.toml:2: `extend` goes in a circle: {circle}"

    def test_a_file_that_is_no_text(self, tmp_path: Path) -> None:
        (tmp_path / "torchlint.toml").write_bytes(b"fix = true\n# \xff\n")
        with pytest.raises(ConfigError, match=r"^torchlint.toml:2: not UTF-8, which TOML has to be; save the file as"):
            config_in(tmp_path)

    def test_a_file_that_cannot_be_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(tmp_path, **{"torchlint.toml": ""})

        def refuse(path: Path, _most: int) -> bytes:
            raise PermissionError(13, "Permission denied", path)

        monkeypatch.setattr(regular, "read", refuse)
        with pytest.raises(ConfigError, match=r"^torchlint.toml: permission denied$"):
            config_in(tmp_path)

    @pytest.mark.parametrize(
        ("overrides", "message"),
        [
            ({"config": ("slect = []",)}, "--config slect = []: unknown key `slect`; did you mean `select`?"),
            (
                {"config": ("output-format=json",)},
                "--config output-format=json: invalid TOML: invalid value; a string needs quotes: KEY='\"value\"'",
            ),
            ({"config": ("no.toml",)}, "--config no.toml: no such file, and not KEY=VALUE either"),
            ({"config": ("pyproject.toml",)}, "--config pyproject.toml: there is no [tool.torchlint] in it"),
            (
                {"config": ("extend = 'x'",)},
                "--config extend = 'x': `extend` belongs in a file; give the file itself with `--config FILE`",
            ),
            (
                {"config": ("a.toml", "pyproject.toml")},
                "--config pyproject.toml: only one file can be given; `extend` in a file joins several",
            ),
            (
                {"config": ("a.toml",), "isolated": True},
                "--config a.toml: a file cannot be given together with --isolated",
            ),
            (
                {"select": ("item-in-trian-loop",)},
                "--select: unknown rule `item-in-trian-loop`; did you mean `item-in-train-loop`?",
            ),
            ({"extend_select": ("x",)}, "--extend-select: unknown rule `x`; `torchlint rules` lists them"),
            ({"per_file_ignores": ("a:x",)}, "--per-file-ignores: unknown rule `x`; `torchlint rules` lists them"),
            ({"per_file_ignores": ("a",)}, "--per-file-ignores a: expected PATTERN:SELECTOR, as in `tests/**:ALL`"),
            ({"exclude": ("[",)}, "--exclude: `[` is not a pattern: a bracket that nothing closes"),
        ],
    )
    def test_on_the_command_line(self, tmp_path: Path, overrides: dict[str, Any], message: str) -> None:
        write(tmp_path, **{"pyproject.toml": "[tool.other]", "a.toml": ""})
        with pytest.raises(ConfigError) as caught:
            Configs(Overrides(**overrides), tmp_path)
        assert str(caught.value) == message


class TestShowing:
    def test_the_values_and_their_sources_are_json(self, tmp_path: Path) -> None:
        text = "select = ['TL301']\nper-file-ignores = { '!a/*' = ['TL3'] }\ntarget-torch = '2.4'"
        write(tmp_path, **{"torchlint.toml": text})
        shown = config_in(tmp_path, output_format="json").as_dict()
        assert json.loads(json.dumps(shown)) == shown
        assert shown["file"] == str(tmp_path / "torchlint.toml")
        assert shown["rules"] == ["item-in-train-loop"]
        options = shown["options"]
        assert isinstance(options, dict)
        assert options["per-file-ignores"] == {"!a/*": ["TL3"]}
        assert options["target-torch"] == "2.4"
        assert "venv" in options["exclude"]
        assert shown["sources"] == {
            "output-format": "--output-format",
            "per-file-ignores": "torchlint.toml",
            "select": "torchlint.toml",
            "target-torch": "torchlint.toml",
        }

    def test_the_command_line_and_the_files_know_the_same_formats(self) -> None:
        from torchlint.options import OutputFormat

        assert sorted(get_args(OutputFormat)) == sorted(FORMATS)


class TestSchema:
    def test_the_file_is_that_of_the_code(self) -> None:
        remedy = "write it anew: torchlint config --schema > torchlint/torchlint.schema.json"
        assert json.loads(SCHEMA.read_text(encoding="utf-8")) == schema(), remedy

    def test_every_key_is_described(self) -> None:
        properties = schema()["properties"]
        assert isinstance(properties, dict)
        assert all(value["description"] and value["examples"] for value in properties.values())

    @pytest.mark.parametrize(
        ("text", "is_valid"),
        [
            ("", True),
            ("select = ['TL3', 'TL301', 'item-in-train-loop', 'sync', 'ALL']", True),
            ("select = ['TL3012']", False),
            ("slect = []", False),
            ("target-torch = '2.4'\ndataloader-workers = 1\nfix = true", True),
            ("target-torch = 2.4", False),
            ("dataloader-workers = 0", False),
            ("hot = ['a.b:C.f', 'f']", False),
            ("hot = ['a.b:C.f', 'f:g']", True),
            ("per-file-ignores = { 'a/*' = ['TL301'] }", True),
            ("per-file-ignores = { 'a/*' = ['TL3012'] }", False),
            ("output-format = 'xml'", False),
            ("rules = { item-in-train-lop = {} }", False),
        ],
    )
    def test_it_says_of_a_file_what_reading_it_says(self, tmp_path: Path, text: str, *, is_valid: bool) -> None:
        validator = jsonschema.Draft7Validator(schema())
        jsonschema.Draft7Validator.check_schema(schema())
        assert validator.is_valid(tomli.loads(text)) is is_valid
        write(tmp_path, **{"torchlint.toml": text})
        try:
            config_in(tmp_path)
        except ConfigError:
            assert not is_valid
        else:
            assert is_valid

    def test_its_examples_are_valid(self, tmp_path: Path) -> None:
        properties = schema()["properties"]
        assert isinstance(properties, dict)
        validator = jsonschema.Draft7Validator(schema())
        for key, value in properties.items():
            validator.validate({key: value["examples"][0]})
            if key != "extend":  # it would need the other file
                write(tmp_path, **{"train.py": ""})  # which `hot` names
                line = f"{key} = {configfile._toml(value['examples'][0])}"  # noqa: SLF001 -- as errors quote it
                write(tmp_path, **{"torchlint.toml": line})
                assert key in config_in(tmp_path).sources

    def test_it_lists_the_options_of_rules(self) -> None:
        rules = schema()["properties"]["rules"]  # type: ignore[index]
        assert rules["properties"].keys() == {rule.name for rule in all_rules() if rule.options}
