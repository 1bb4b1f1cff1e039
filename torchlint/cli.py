"""The command line: options, help, and what goes wrong in one line for people."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchlint import __version__

# A command imports what it needs when it runs: `--help` needs nothing.
if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from torchlint.config import Overrides
    from torchlint.report.style import Style

USAGE = 2
FORMATS = ("full", "concise", "json", "github", "gitlab", "sarif", "junit", "rdjson", "pylint", "azure")

_REPLICATES = 16
_SEED = 1
_SAMPLES = 512  # that `--synthetic-data` makes up, where it is not told how many
_ISSUES = "https://github.com/torchlint/torchlint/issues"


def run(arguments: Sequence[str]) -> int:
    """Run a command line; the exit status. Raises `KeyboardInterrupt`, and nothing else."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(
                errors="backslashreplace"
            )  # a terminal that cannot show a character is no reason to fail
    if os.environ.get("_TORCHLINT_COMPLETE", "").startswith("fish_"):
        _complete_in_fish()
    try:
        status = torchlint.main(_expanded(arguments), prog_name="torchlint", standalone_mode=False)
    except (click.Abort, _InterruptedError):
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        return _fail(_described(error))
    except Exception as error:  # noqa: BLE001 - a traceback is not for users
        from torchlint.shipped import UnpackableError  # only on the way to an error

        if isinstance(error, UnpackableError):
            return _fail(str(error))
        if not {"-v", "--verbose"}.isdisjoint(arguments):
            import traceback

            traceback.print_exc()
        what = " ".join(f"{type(error).__name__}: {error}".split())
        return _fail(f"torchlint failed: {what}; please report it at {_ISSUES} (`-v` shows where)")
    return status if isinstance(status, int) else 0


def _complete_in_fish() -> None:
    """Have fish cut at the first comma alone what click offers it: lists of rules, and texts of help, have more."""
    from click.shell_completion import FishComplete, add_completion_class

    class Complete(FishComplete):
        source_template = FishComplete.source_template.replace("string split ", "string split --max 1 ")

    add_completion_class(Complete)


def _fail(message: str) -> int:
    from torchlint.report.text import visible  # only on the way to an error

    click.echo(f"error: {visible(message)}", err=True)
    return USAGE


class _InterruptedError(Exception):
    """Ctrl-C, where click cannot see it and print a line of its own."""


def _expanded(arguments: Iterable[str]) -> list[str]:
    """The arguments, with those in the file in the place of each `@FILE`, one to a line."""
    expanded: list[str] = []
    for argument in arguments:
        if argument.startswith("@") and len(argument) > 1:
            try:
                # With the mark that PowerShell and Windows' editors begin a file with, or without.
                expanded += Path(argument[1:]).read_text(encoding="utf-8-sig").splitlines()
            except UnicodeDecodeError:
                wrong = "cannot read arguments from this file: not UTF-8; save it as UTF-8"
                raise click.UsageError(f"{argument}: {wrong}") from None
            except OSError as error:
                raise click.UsageError(f"{argument}: cannot read arguments from this file: {error}") from None
        else:
            expanded.append(argument)
    return expanded


def _described(error: click.ClickException) -> str:
    """What is wrong, and what was probably meant."""
    if isinstance(error, click.NoSuchOption):
        command = error.ctx.command_path if error.ctx else "torchlint"
        hint = _meant(error.option_name, error.possibilities or (), f"`{command} --help` lists them")
        return f"no such option `{error.option_name}`; {hint}"
    message = " ".join(error.format_message().split()).rstrip(".")
    option, context = getattr(error, "param", None), error.ctx if isinstance(error, click.UsageError) else None
    if option is not None and context is not None and option.name is not None:
        source = context.get_parameter_source(option.name)
        message += f" (from {option.envvar})" if source is click.core.ParameterSource.ENVIRONMENT else ""
    # What click says begins with a word, what is said of a file with its path, which may begin with a capital.
    return message[:1].lower() + message[1:] if message.partition(" ")[0].isalpha() else message


def _meant(name: str, names: Iterable[str], otherwise: str) -> str:
    from difflib import get_close_matches  # only on the way to an error

    near = get_close_matches(name, list(names), n=1)
    return f"did you mean `{near[0]}`?" if near else otherwise


# What click is made to do


_OF_FILES = ("FILE", "FOLDER", "FILE|KEY=VALUE", "FILE:LINE")


def _files(ctx: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Asks the shell for files, which click does for its own type alone; that one looks at them, too."""
    from click.shell_completion import CompletionItem

    del ctx, parameter
    return [CompletionItem(begun, type="file")]


def _folders(ctx: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    del ctx, parameter
    return [CompletionItem(begun, type="dir")]


class _Option(click.Option):
    """An option with the section of the help that lists it."""

    def __init__(self, names: Sequence[str], section: str, **attributes: Any) -> None:  # noqa: ANN401 - click's
        if (metavar := attributes.get("metavar")) in _OF_FILES:
            attributes["shell_complete"] = _files if metavar != "FOLDER" else _folders
        super().__init__(names, **attributes)
        self.section = section

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Names and text; the `--no-` of a flag goes without saying."""
        del ctx
        choices = "|".join(self.type.choices) if isinstance(self.type, click.Choice) else None
        value = "" if self.is_flag else self.metavar or choices or ""
        names = ", ".join(sorted(self.opts, key=len))
        indent = "" if self.opts[0][1] != "-" or len(self.opts) > 1 else "    "
        return f"{indent}{names}{value if value.startswith('[=') else f' {value}'}", self.help or ""


class _Command(click.Command):
    """A command whose help has sections."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise _InterruptedError from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options in sections, all of them in the same two columns."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                sections.setdefault(getattr(parameter, "section", "Options"), []).append(record)
        widest = max(len(names) for records in sections.values() for names, _ in records)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl([(names.ljust(widest), text) for names, text in records], col_max=widest)


class _CheckCommand(_Command):
    """`check` or `fix`, which take the same options."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its options, which cost 2 ms to make."""
        if not self.params:
            self.params = _parameters(fixing=self.name == "fix")
        return super().get_params(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # To click, an option with an optional value takes the path behind it for that value.
        return super().parse_args(ctx, ["--add-ignore=" if arg == "--add-ignore" else arg for arg in args])


class _Group(click.Group):
    """The program, its commands in the order of their use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            if Path(name).exists():
                raise click.UsageError(f"`{name}` is no command; did you mean `torchlint check {name}`?")
            hint = _meant(name, self.list_commands(ctx), "`torchlint --help` lists them")
            raise click.UsageError(f"no such command `{name}`; {hint}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Group,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`torchlint COMMAND --help` says more.",
)
@click.version_option(__version__, "-V", "--version", prog_name="torchlint", message="%(prog)s %(version)s")
@click.pass_context
def torchlint(ctx: click.Context) -> int:
    """Find the lines that make a PyTorch program slow, and rewrite those that can be rewritten."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        return USAGE
    return 0


# check, fix


def _list(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...] | None:
    """The words of an option that is repeated, takes them with commas between, or both; None if it is not given."""
    del ctx, parameter
    return tuple(word.strip() for value in values for word in value.split(",") if word.strip()) if values else None


def _words(name: str, section: str, metavar: str, text: str) -> _Option:
    complete = _completed if metavar in ("RULES", "RULE") else None
    return _Option([name], section, multiple=True, metavar=metavar, callback=_list, shell_complete=complete, help=text)


def _severity(name: str, section: str, text: str) -> _Option:
    return _Option([name], section, type=click.Choice(("note", "warning")), metavar="SEVERITY", help=text)


def _flag(names: str, section: str, text: str, envvar: str | None = None) -> _Option:
    return _Option(names.split(), section, is_flag=True, help=text, envvar=envvar)


def _either(name: str, section: str, text: str) -> _Option:
    """A flag that the configuration decides if the command line does not."""
    return _Option([f"--{name}/--no-{name}"], section, default=None, help=text)


def _parameters(*, fixing: bool) -> list[click.Parameter]:
    return [
        click.Argument(["paths"], nargs=-1, shell_complete=_files),
        _words("--select", "Rules", "RULES", "Run these rules only: codes, prefixes, names, groups or ALL."),
        _words("--extend-select", "Rules", "RULES", "Run these rules too."),
        _words("--ignore", "Rules", "RULES", "Do not run these rules."),
        _words("--per-file-ignores", "Rules", "PATTERN:RULE", "Do not run a rule in the files that match."),
        _either("preview", "Rules", "Also run rules that are new and may change."),
        _severity("--level", "Rules", "Report findings that are at least this severe: note (the default) or warning."),
        *([] if fixing else [_either("fix", "Fixes", "Apply the fixes that are safe.")]),
        _either("unsafe-fixes", "Fixes", "Apply or show also those that may change what is computed."),
        _flag("--diff", "Fixes", "Show what --fix would change, and change nothing."),
        _flag("--show-fixes", "Fixes", "List what was fixed."),
        _flag("--fix-only", "Fixes", "Fix, and do not report what remains."),
        *(_proving() if fixing else []),
        _Option(
            ["--add-ignore"],
            "Fixes",
            metavar="[=REASON]",
            help="Write an ignore comment for every finding, with a reason.",
        ),
        _Option(["--baseline"], "Baseline", metavar="FILE", help="Do not report the findings that are in this file."),
        _Option(
            ["--diff-base"],
            "Baseline",
            metavar="REF",
            help="Report what is new since git's branch, tag or commit REF.",
        ),
        _Option(["--write-baseline"], "Baseline", metavar="FILE", help="Write what is found to this file."),
        _words("--exclude", "Files", "PATTERNS", "Leave these out, instead of the usual ones."),
        _words("--extend-exclude", "Files", "PATTERNS", "Leave these out too."),
        _either("force-exclude", "Files", "Leave them out even when they are named."),
        _either("include-tests", "Files", "Check tests like other code."),
        _either("respect-gitignore", "Files", "Leave out what git ignores (on by default)."),
        _Option(["--stdin-filename"], "Files", metavar="FILE", help="The name of what `-` reads from standard input."),
        _flag("--show-files", "Files", "List the files that would be checked."),
        _flag("--show-settings", "Files", "Print the settings that hold for the first path, and who set them."),
        _Option(
            ["--output-format"],
            "Output",
            type=click.Choice(FORMATS),
            envvar="TORCHLINT_OUTPUT_FORMAT",
            metavar="FORMAT",
            help=f"How to report: {', '.join(FORMATS)}.",
        ),
        _Option(
            ["-o", "--output-file"],
            "Output",
            metavar="FILE",
            envvar="TORCHLINT_OUTPUT_FILE",
            help="Write the report to a file.",
        ),
        _flag("--statistics", "Output", "Count the findings of each rule."),
        _Option(
            ["--group-by"],
            "Output",
            type=click.Choice(("rule", "file", "loop")),
            metavar="WHAT",
            help="Report findings in groups: by rule, by file, or by the loop that they run in.",
        ),
        _Option(
            ["--sort"],
            "Output",
            type=click.Choice(("place", "impact")),
            default="place",
            metavar="HOW",
            help="Report by place, or by impact: warnings first, what runs most often first.",
        ),
        _Option(
            ["--color"],
            "Output",
            type=click.Choice(("auto", "always", "never")),
            default="auto",
            metavar="WHEN",
            help="Use colours: auto, always or never.",
        ),
        *(
            []
            if fixing
            else [
                _flag("-w --watch", "Output", "Check again whenever a file changes, until Ctrl-C."),
                _Option(
                    ["--explain-model"],
                    "Output",
                    metavar="FILE:LINE",
                    help="Say what is known of a line: how often it runs, the grad mode, what its names hold.",
                ),
                _Option(
                    ["--profile"],
                    "Output",
                    metavar="TRACE",
                    help="Rank findings by the time that a trace of torch.profiler (.json or .json.gz) has for them.",
                ),
            ]
        ),
        _flag("-q --quiet", "Output", "Print findings only."),
        _flag("-s --silent", "Output", "Print nothing; the exit status says it."),
        _flag("-v --verbose", "Output", "Also print what is done, and where torchlint fails."),
        _severity(
            "--fail-on",
            "Output",
            "Exit with 1 for findings at least this severe: warning (the default) or note.",
        ),
        _flag("-e --exit-zero", "Output", "Exit with 0 in spite of findings."),
        _flag("--exit-non-zero-on-fix", "Output", "Exit with 1 if anything was fixed."),
        _Option(
            ["--config"],
            "Configuration",
            multiple=True,
            metavar="FILE|KEY=VALUE",
            help="Use this file, or set a key; may be repeated.",
        ),
        _flag("--isolated", "Configuration", "Read no configuration file."),
        _cache_dir(),
        _no_cache(),
        _Option(
            ["-j", "--jobs"],
            "Running",
            type=click.IntRange(min=1),
            metavar="N",
            help="At most so many processes (one per processor by default).",
        ),
    ]


def _cache_dir() -> _Option:
    return _Option(
        ["--cache-dir"],
        "Running",
        metavar="FOLDER",
        envvar="TORCHLINT_CACHE_DIR",
        help="Where results are remembered (in the user's cache folder by default).",
    )


def _no_cache() -> _Option:
    return _flag("-n --no-cache", "Running", "Remember nothing.", envvar="TORCHLINT_NO_CACHE")


def _proving() -> list[click.Parameter]:
    """The options of `fix --verified`, which runs the program as `verify` does."""
    return [
        _flag(
            "--verified", "Proof", "Run the program PATH, with the arguments behind `--`; apply what is proven faster."
        ),
        _Option(["--entry"], "Proof", metavar="MODULE:FUNCTION", help="With --verified: run this function."),
        _device(),
        _budget(),
    ]


def _check(paths: tuple[str, ...], **options: Any) -> int:  # noqa: ANN401 - click has checked them
    if options.get("verified"):
        return _fix_verified(paths, options)
    for name in ("entry", "device", "budget"):
        if options.get(name):
            raise click.UsageError(f"`--{name}` goes with `--verified`, which runs the program")
    from torchlint.config import ConfigError
    from torchlint.run import Loudness, Order, OutputError, check

    if "-" in paths and len(paths) > 1:
        raise click.UsageError("`-` is standard input and cannot be checked together with files")
    _check_together(paths, options)
    order = Order(
        cwd=Path.cwd(),
        paths=paths or (".",),
        overrides=_overrides(options),
        stdin_filename=options["stdin_filename"],
        diff=options["diff"],
        fix_only=options["fix_only"],
        add_ignore=options["add_ignore"],
        write_baseline=options["write_baseline"],
        diff_base=options["diff_base"],
        show_fixes=options["show_fixes"],
        show_files=options["show_files"],
        show_settings=options["show_settings"],
        statistics=options["statistics"],
        sort=options["sort"],
        group_by=options["group_by"] or "",
        exit_zero=options["exit_zero"],
        exit_non_zero_on_fix=options["exit_non_zero_on_fix"],
        output_file=options["output_file"],
        color=options["color"],
        loudness=(
            Loudness.SILENT
            if options["silent"]
            else Loudness.QUIET
            if options["quiet"]
            else Loudness.VERBOSE
            if options["verbose"]
            else Loudness.NORMAL
        ),
        cache=not options["no_cache"],
        jobs=options["jobs"],
        profile=options.get("profile"),
    )
    try:
        if options.get("explain_model"):
            from torchlint.explain_model import explain_model

            return explain_model(order, options["explain_model"])
        if options.get("watch"):
            from torchlint.watch import watch

            return watch(order)
        return check(order)
    except (ConfigError, OutputError) as error:
        raise click.ClickException(str(error)) from None


def _check_together(paths: tuple[str, ...], options: dict[str, Any]) -> None:
    """Options of which one asks for what the other does not do."""
    if options["baseline"] and options["add_ignore"] is not None:
        raise click.UsageError("`--baseline` and `--add-ignore` cannot be given together: each accepts what is found")
    for name in ("diff", "add_ignore", "statistics", "output_file"):
        if options["write_baseline"] and options[name] not in (None, False):
            option = name.replace("_", "-")
            raise click.UsageError(f"`--write-baseline` and `--{option}` cannot be given together")
    if options["diff_base"] is not None and (options["write_baseline"] or paths == ("-",)):
        other = "--write-baseline" if options["write_baseline"] else "-"
        raise click.UsageError(f"`--diff-base` and `{other}` cannot be given together")
    if options["group_by"] and options["statistics"]:
        raise click.UsageError("`--group-by` and `--statistics` cannot be given together")
    if options.get("watch"):
        for name in ("write_baseline", "add_ignore", "show_files", "show_settings", "output_file"):
            if options[name] not in (None, False):
                raise click.UsageError(f"`--watch` and `--{name.replace('_', '-')}` cannot be given together")
        if paths == ("-",):
            raise click.UsageError("`--watch` needs files: standard input does not change")
    if options["write_baseline"] and paths == ("-",):
        raise click.UsageError("`--write-baseline` needs files: standard input has no place in a baseline")


def _overrides(options: dict[str, Any]) -> Overrides:
    """What the options of `check` or `fix` say above the configuration."""
    from torchlint.config import Overrides

    return Overrides(
        config=_config(options["config"], isolated=options["isolated"]),
        isolated=options["isolated"],
        select=options["select"],
        ignore=options["ignore"] or (),
        extend_select=options["extend_select"] or (),
        per_file_ignores=options["per_file_ignores"] or (),
        exclude=options["exclude"],
        extend_exclude=options["extend_exclude"] or (),
        respect_gitignore=options["respect_gitignore"],
        force_exclude=options["force_exclude"],
        include_tests=options["include_tests"],
        preview=options["preview"],
        level=options["level"],
        fail_on=options["fail_on"],
        output_format=options["output_format"],
        unsafe_fixes=options["unsafe_fixes"],
        fix=options.get("fix", True),
        cache_dir=options["cache_dir"],
        baseline=options["baseline"],
    )


def _config(given: tuple[str, ...], *, isolated: bool) -> tuple[str, ...]:
    """What `--config` says, or the environment, whose value click would split at blanks."""
    fallback = os.environ.get("TORCHLINT_CONFIG")
    return (fallback,) if fallback and not given and not isolated else given


_CHECK_HELP = """Report what makes the given files slow; folders are searched for Python files and notebooks.

Exit status: 0 if there is nothing to report, 1 if there is, 2 if torchlint could not do what was asked."""

_ENVIRONMENT = """TORCHLINT_OUTPUT_FORMAT, TORCHLINT_OUTPUT_FILE, TORCHLINT_CONFIG, TORCHLINT_CACHE_DIR and
TORCHLINT_NO_CACHE in the environment stand for the options of these names."""

_FIX_HELP = """Apply the fixes that are safe, and report what remains. The same as `torchlint check --fix`."""

torchlint.add_command(
    _CheckCommand(
        "check", callback=_check, help=_CHECK_HELP, epilog=_ENVIRONMENT, short_help="Report what makes files slow."
    )
)
torchlint.add_command(
    _CheckCommand(
        "fix", callback=_check, help=_FIX_HELP, epilog=_ENVIRONMENT, short_help="Apply the fixes that are safe."
    )
)


# report


@torchlint.command(cls=_Command, short_help="Add up what a step of each loop costs, without running it.")
@click.argument("paths", nargs=-1)
@click.option(
    "--profile", metavar="TRACE", help="Add what a trace of torch.profiler (.json or .json.gz) has for the lines."
)
@click.option("--html", metavar="FILE", help="Also write the report to one HTML file, with pictures of a step.")
@click.option("--output-format", type=click.Choice(("text", "json")), default="text", help="How to print.")
@click.option("--select", multiple=True, metavar="RULES", callback=_list, help="Ask these rules, as for `check`.")
@click.option("--preview", is_flag=True, default=None, help="Ask new rules, too.")
@click.option("--config", multiple=True, metavar="FILE|KEY=VALUE", help="As for `check`.")
@click.option("--isolated", is_flag=True, help="Read no configuration file.")
@click.option("-n", "--no-cache", is_flag=True, envvar="TORCHLINT_NO_CACHE", help="Remember nothing.")
def report(paths: tuple[str, ...], *, isolated: bool, **options: Any) -> int:  # noqa: ANN401 - click has checked them
    """Add up what a step of each loop costs: synchronizations, copies, launches, allocations, the worst first.

    Nothing is run: the counts are by what the code says, in doubt where it does not say enough.
    """
    from torchlint.config import ConfigError, Overrides
    from torchlint.cost_sheet import report as write_report
    from torchlint.run import Order, OutputError

    overrides = Overrides(
        config=_config(options["config"], isolated=isolated),
        isolated=isolated,
        select=options["select"] or None,
        preview=options["preview"],
    )
    given = [*paths, *([f"--profile {options['profile']}"] if options["profile"] else [])]
    order = Order(Path.cwd(), paths or (".",), overrides, cache=not options["no_cache"], profile=options["profile"])
    try:
        return write_report(order, " ".join(["torchlint report", *given]), options["output_format"], options["html"])
    except (ConfigError, OutputError) as error:
        raise click.ClickException(str(error)) from None


# corpus


def _columns(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """`repository=NAME,path=NAME,content=NAME`, or some of them."""
    found: dict[str, str] = {}
    for word in _list(ctx, parameter, values) or ():
        column, _, name = word.partition("=")
        if column not in ("repository", "path", "content") or not name:
            raise click.BadParameter(f"{word}: expected repository=NAME, path=NAME or content=NAME")
        found[column] = name
    return tuple(sorted(found.items()))


@torchlint.command(cls=_Command, short_help="Check the files that stand in Parquet, on one machine or many.")
@click.argument("source", metavar="IN.parquet", shell_complete=_files)
@click.argument("target", metavar="OUT.parquet", shell_complete=_folders)
@click.option(
    "--engine",
    type=click.Choice(("local", "ray", "spark")),
    default="local",
    help="Who does it: processes here (the default), Ray Data or Spark.",
)
@click.option("-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="At most so many processes.")
@click.option(
    "--columns",
    multiple=True,
    metavar="COLUMN=NAME",
    callback=_columns,
    help="What repository, path, content are called.",
)
@click.option(
    "--seconds", type=click.FloatRange(min=1), default=30.0, metavar="N", help="CPU seconds for a step of a file (30)."
)
@click.option(
    "--memory", type=click.IntRange(min=256), default=2048, metavar="MIB", help="Memory for a process, in MiB (2048)."
)
@click.option("--select", multiple=True, metavar="RULES", callback=_list, help="Run these rules only, as for `check`.")
@click.option("--ignore", multiple=True, metavar="RULES", callback=_list, help="Do not run these rules.")
@click.option("--preview", is_flag=True, default=None, help="Also run rules that are new and may change.")
@click.option("--level", type=click.Choice(("note", "warning")), help="Keep findings that are at least this severe.")
@click.option("--include-tests", is_flag=True, default=None, help="Check tests like other code.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def corpus(source: str, target: str, **options: Any) -> int:  # noqa: ANN401 - click has checked them
    """Check the files in the rows of IN.parquet, a file or a folder of them, and write what is found to OUT.parquet.

    IN has the columns repository, path and content; OUT becomes a folder of Parquet files, with a row for each file.
    The same command goes on where an earlier one stopped. Exit status: 0 if all is written, 2 if it is not.
    """
    from torchlint.config import ConfigError, Overrides

    try:
        from torchlint.corpus.command import CorpusError, Order
        from torchlint.corpus.command import corpus as check_corpus
        from torchlint.corpus.inside import Limits
        from torchlint.corpus.table import Options
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "pyarrow":
            raise
        needed = "reading Parquet needs pyarrow, which is not installed: `pip install 'torchlint[corpus]'`"
        raise click.ClickException(needed) from None
    overrides = Overrides(
        isolated=True,
        select=options["select"],
        ignore=options["ignore"] or (),
        preview=options["preview"],
        level=options["level"],
        include_tests=options["include_tests"],
    )
    limits = Limits(options["seconds"], options["memory"] << 20)
    how = Options(overrides, limits, options["columns"])
    order = Order(Path(source), Path(target), how, options["engine"], options["jobs"], options["quiet"])
    try:
        check_corpus(order)
    except (ConfigError, CorpusError) as error:
        raise click.ClickException(str(error)) from None
    return _with_packs()


# verify


def _duration(ctx: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """Seconds, of `90`, `90s`, `10m` or `1h`."""
    del ctx, parameter
    if value is None:
        return None
    from torchlint.verify.progress import seconds

    try:
        return seconds(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _device(section: str = "Proof") -> _Option:
    return _Option(
        ["--device"],
        section,
        type=click.Choice(("cuda", "cpu", "sim", "mps", "xpu")),
        metavar="DEVICE",
        help="cuda (the default), cpu, mps, xpu, or sim: a simulated CUDA device, which counts and has no time.",
    )


def _budget(section: str = "Proof") -> _Option:
    return _Option(
        ["--budget"], section, callback=_duration, metavar="TIME", help="Stop after this long: 90s, 10m, 1h."
    )


class _VerifyCommand(_Command):
    """`verify`, whose options cost time to make."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        if not self.params:
            self.params = _verify_parameters()
        return super().get_params(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # As for `--add-ignore`; a number behind it is its value.
        given = args.index("--synthetic-data") if "--synthetic-data" in args else len(args)
        ours = args.index("--") if "--" in args else len(args)
        if given < ours and not "".join(args[given + 1 : given + 2]).isdigit():
            args = [*args[:given], f"--synthetic-data={_SAMPLES}", *args[given + 1 :]]
        return super().parse_args(ctx, args)


def _verify_parameters() -> list[click.Parameter]:
    return [
        click.Argument(["path"], required=False, shell_complete=_files),
        click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED),
        _words("--rule", "What", "RULE", "Measure the pair of files of a rule, or of ALL rules."),
        _words("--size", "What", "SIZE", "Measure a rule's pair at this size, or at all sizes."),
        _flag("--stale", "What", "Measure a rule's pair only where --evidence has nothing that still holds."),
        _words(
            "--phase",
            "What",
            "PHASES",
            "Of a rule's pair, do `numerics`, `numerics,counts` (several pairs at once) or `time` only.",
        ),
        _flag("--plan", "What", "Print what would be measured of rules within --budget, and how long it takes."),
        _Option(
            ["--entry"], "What", metavar="MODULE:FUNCTION", help="Run this function, instead of PATH as a program."
        ),
        _words("--select", "What", "RULES", "Measure the fixes of these rules only."),
        _either("unsafe-fixes", "What", "Also measure fixes that may change what is computed."),
        _flag("--self-check", "What", "Measure code against itself, to see how far the machine can be trusted."),
        _flag("--schema", "What", "Print the JSON Schema of evidence files."),
        _device("How"),
        _budget("How"),
        _Option(
            ["--max-replicates"],
            "How",
            type=click.IntRange(4, 64),
            default=_REPLICATES,
            metavar="N",
            help=f"At most so many sets of fresh processes ({_REPLICATES} by default).",
        ),
        _Option(
            ["--only-count"],
            "What",
            is_flag=True,
            help="Measure no fix; count what the lines of a program ask of a cuda or sim device.",
        ),
        _Option(["--steps"], "How", type=click.IntRange(min=1), metavar="N", help="Count so many steps of a program."),
        _Option(
            ["--synthetic-data"],
            "How",
            type=click.IntRange(min=1),
            envvar="TORCHLINT_SYNTHETIC_DATA",
            metavar="[N]",
            help=f"In place of torchvision's datasets, N made-up samples of each ({_SAMPLES} by default).",
        ),
        _Option(["--seed"], "How", type=int, default=_SEED, metavar="N", help="Of the order of runs and of the code."),
        _Option(["--python"], "How", metavar="PROGRAM", help="The Python that has the code's packages."),
        _Option(["--allow-write"], "How", multiple=True, metavar="FOLDER", help="Let the code write there."),
        _Option(
            ["--output-format"],
            "Output",
            type=click.Choice(("text", "json")),
            default="text",
            metavar="FORMAT",
            help="How to report: text or json.",
        ),
        _Option(["--html"], "Output", metavar="FILE", help="Also write the report to one HTML file."),
        _Option(
            ["--evidence"],
            "Output",
            metavar="FOLDER",
            help="Write what was measured of rules there (fixtures, in a checkout of torchlint).",
        ),
        _Option(["--raw"], "Output", metavar="FILE", help="Also write each block that is timed to one .gz file."),
        _flag("-q --quiet", "Output", "Do not show progress."),
        _cache_dir(),
        _no_cache(),
    ]


_VERIFY_HELP = """Run slow and fixed code on this machine, compare what they compute, and measure what the fix is worth.

PATH is a program, run with ARGUMENTS (`torchlint verify train.py -- --epochs 1`), or a folder with functions named
`bench_*`; without one, `entry` in [tool.torchlint.verify] says what is run. With --rule, the files that come with
torchlint are measured. This command runs the code that it measures.

Exit status: 0 if nothing speaks against a fix, 1 if something does, 2 if it could not do what was asked, 3 if there
is no such device or nothing to run, 4 if the machine was not fit to measure."""


# Options of `fix` that have no meaning where a program is run and its proven fixes are written.
_NOT_VERIFIED = (
    "diff", "show_fixes", "fix_only", "add_ignore", "baseline", "write_baseline", "diff_base",
    "stdin_filename", "show_files", "show_settings", "output_file", "statistics",
    "exit_zero", "exit_non_zero_on_fix",
)  # fmt: skip


def _fix_verified(paths: tuple[str, ...], options: dict[str, Any]) -> int:
    """`fix --verified`: what `verify` does with a program, and then what it has proven is written."""
    for name in _NOT_VERIFIED:
        if options[name]:
            raise click.UsageError(
                f"`--{name.replace('_', '-')}` does not go with `--verified`; see `torchlint verify`"
            )
    path, arguments = (None, ()) if not paths else (paths[0], paths[1:])
    asked: dict[str, Any] = {str(parameter.name): None for parameter in _verify_parameters()}
    asked |= {"max_replicates": _REPLICATES, "seed": _SEED, "path": path, "arguments": arguments}
    asked |= {name: options[name] for name in ("entry", "device", "budget", "select", "unsafe_fixes", "no_cache")}
    asked |= {"quiet": options["quiet"] or options["silent"], "overrides": _overrides(options)}
    asked |= {"output_format": "json" if options["output_format"] == "json" else "text"}
    return _verify(apply=True, **asked)


def _verify(*, apply: bool = False, **options: Any) -> int:  # noqa: ANN401 - click has checked them
    from torchlint.verify import command

    try:
        return _with_packs(command.verify(options, _style(), apply=apply))
    except command.UsageError as error:
        raise click.UsageError(str(error)) from None
    except command.CannotRunError as error:
        click.echo(f"error: {error}", err=True)
        return command.CANNOT_RUN
    except command.UnfitError as error:
        click.echo(f"error: {error}", err=True)
        return command.UNFIT


torchlint.add_command(
    _VerifyCommand(
        "verify", callback=_verify, help=_VERIFY_HELP, short_help="Measure what fixes are worth, on this machine."
    )
)


# The other commands


def _with_packs(status: int = 0) -> int:
    """The status of a command, after what is wrong with rule packs is said."""
    from torchlint.registry import problems

    for problem in problems():
        _fail(problem)
    return max(status, USAGE) if problems() else status


def _style() -> Style:
    from torchlint.report.style import Style, decide, decide_links

    color = decide("auto", sys.stdout, os.environ)
    return Style(color, color and decide_links(sys.stdout, os.environ))


_output_format = click.option(
    "--output-format", type=click.Choice(("text", "json")), default="text", help="How to print."
)


def _completed(ctx: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """The rules whose name or code begins so, for a shell; behind the last comma of a list."""
    del ctx, parameter
    from click.shell_completion import CompletionItem

    from torchlint.registry import all_rules

    before, comma, last = begun.rpartition(",")
    words = ((word, rule.summary) for rule in all_rules() for word in (rule.name, rule.code))
    return [
        CompletionItem(before + comma + word, help=summary)
        for word, summary in words
        if word.lower().startswith(last.lower())
    ]


_EXPLAIN_HELP = """Explain a rule, by its name or code, or a line: what is known of it, and why each rule spoke or was
silent."""


def _explain(rule: str, output_format: str, **options: Any) -> int | None:  # noqa: ANN401 - click has checked them
    from torchlint.explain import page_json, page_text
    from torchlint.explain_model import is_place
    from torchlint.registry import UnknownRuleError, find
    from torchlint.run import terminal_width, write_out

    if is_place(rule):
        return _explain_line(rule, output_format, options)
    if rule.endswith((".py", ".ipynb")):
        raise click.ClickException(f"say which line of it: `torchlint explain {rule}:1`")
    try:
        found = find(rule)
    except UnknownRuleError as error:
        raise click.ClickException(str(error)) from None
    text = page_json(found) if output_format == "json" else page_text(found, _style(), terminal_width(sys.stdout))
    write_out(text, sys.stdout)
    return None


def _explaining(name: str, short: str) -> _Command:
    return _Command(
        name,
        params=[
            click.Argument(["rule"], metavar="RULE|FILE:LINE", shell_complete=_completed),
            click.Option(
                ["--output-format"], type=click.Choice(("text", "json")), default="text", help="How to print."
            ),
            click.Option(
                ["--select"],
                multiple=True,
                metavar="RULES",
                callback=_list,
                shell_complete=_completed,
                help="Of a line: ask these rules, as for `check`.",
            ),
            click.Option(["--preview"], is_flag=True, default=None, help="Of a line: ask new rules, too."),
            click.Option(["--config"], multiple=True, metavar="FILE|KEY=VALUE", help="Of a line: as for `check`."),
            click.Option(["--isolated"], is_flag=True, help="Of a line: read no configuration file."),
        ],
        callback=_explain,
        help=_EXPLAIN_HELP,
        short_help=short,
    )


torchlint.add_command(_explaining("explain", "Explain a rule, or what is known of a line."))
torchlint.add_command(_explaining("rule", "The same as explain."))


def _explain_line(place: str, output_format: str, options: dict[str, Any]) -> int:
    from torchlint.config import ConfigError, Overrides
    from torchlint.explain_line import explain_line
    from torchlint.run import Order, OutputError

    isolated = options["isolated"]
    overrides = Overrides(
        config=_config(options["config"], isolated=isolated),
        isolated=isolated,
        select=options["select"] or None,
        preview=options["preview"],
    )
    try:
        return explain_line(Order(Path.cwd(), overrides=overrides), place, output_format)
    except (ConfigError, OutputError) as error:
        raise click.ClickException(str(error)) from None


@torchlint.command(cls=_Command, short_help="See in ten seconds what torchlint does.")
@click.option("--script", is_flag=True, help="Print the script that it is shown on.")
def demo(*, script: bool) -> int:
    """Show what torchlint finds in a training script, how it fixes that, and what the fix saves on a simulated GPU."""
    from torchlint import demo as demonstration

    if script:
        click.echo(demonstration.SCRIPT, nl=False)
        return 0
    return demonstration.demo()


@torchlint.command(cls=_Command)
@_output_format
def rules(output_format: str) -> int:
    """List the rules."""
    from torchlint.explain import table_json, table_text
    from torchlint.registry import all_rules
    from torchlint.run import terminal_width, write_out

    found = all_rules()
    text = table_json(found) if output_format == "json" else table_text(found, _style(), terminal_width(sys.stdout))
    write_out(text, sys.stdout)
    return _with_packs()


@torchlint.command(cls=_Command)
@click.option("--show", is_flag=True, help="Print what holds in this folder, and who set it (the default).")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of configuration files.")
@click.option("--config", multiple=True, metavar="FILE|KEY=VALUE", help="As for `check`.")
@click.option("--isolated", is_flag=True, help="Read no configuration file.")
def config(*, show: bool, schema: bool, config: tuple[str, ...], isolated: bool) -> int:
    """Show the configuration as JSON."""
    import json

    from torchlint import config as configuration
    from torchlint.run import write_out

    if show and schema:
        raise click.UsageError("`--show` and `--schema` cannot be given together")
    try:
        overrides = configuration.Overrides(config=_config(config, isolated=isolated), isolated=isolated)
        found = (
            configuration.schema()
            if schema
            else configuration.Configs(overrides, Path.cwd()).for_directory(Path.cwd()).as_dict()
        )
    except configuration.ConfigError as error:
        raise click.ClickException(str(error)) from None
    write_out(json.dumps(found, indent=2) + "\n", sys.stdout)
    return _with_packs()


@torchlint.command(cls=_Command)
@click.option("--cache-dir", metavar="FOLDER", envvar="TORCHLINT_CACHE_DIR", help="The folder, if not the usual one.")
def clean(cache_dir: str | None) -> None:
    """Clear the cache of this folder."""
    from torchlint.cache import clean as clean_cache
    from torchlint.config import ConfigError, Configs, Overrides
    from torchlint.owned import NotOwnedError

    try:
        folder = Configs(Overrides(cache_dir=cache_dir), Path.cwd()).for_directory(Path.cwd()).cache_folder
        if folder is None:
            raise click.ClickException("there is no cache folder: neither HOME nor XDG_CACHE_HOME is an absolute path")
        removed = clean_cache(folder)
    except NotOwnedError as error:
        raise click.ClickException(f"{error}; nothing was removed") from None
    except (ConfigError, OSError) as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"Removed {folder}" if removed else f"Nothing to remove at {folder}", err=True)


@torchlint.command(cls=_Command, short_help="Serve an editor: the language server.")
@click.option("--stdio", is_flag=True, help="Speak on standard input and output, which is the only way there is.")
def server(*, stdio: bool) -> int:
    """Serve an editor over the Language Server Protocol, on standard input and output."""
    del stdio
    try:
        from torchlint.lsp.server import main
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        needed = "the language server needs pygls, which is not installed: `pip install 'torchlint[lsp]'`"
        raise click.ClickException(needed) from None
    return main()
