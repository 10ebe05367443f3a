"""Groups of commands; the module of a command is imported only when the command is called.

The help of a group shows the lines that are written here, without importing any of the modules.
"""

from __future__ import annotations

import click

from judge.cli.help import LazyGroup
from judge.serve.options import check_installed

_DATASET = "judge.cli.dataset"
_AUTHORING = "judge.cli.dataset_authoring"
_CHECKLISTS = "judge.cli.dataset"
_ANNOTATE = "judge.cli.annotate"
_ADMIN = "judge.cli.serve_admin"


@click.group(
    cls=LazyGroup,
    rows={
        "Commands": {
            "add-task": (
                _AUTHORING,
                "add_task",
                "Add a task to SUITE, as a draft; its files are copied.",
            ),
            "edit-task": (_AUTHORING, "edit_task", "Change fields of a task of SUITE."),
            "export": (_AUTHORING, "export", "Write SUITE to TARGET: a folder, or a .tar.gz."),
            "export-rewardkit": (
                _CHECKLISTS,
                "export_rewardkit",
                (
                    "Write the checklist SOURCE to the new folder TARGET, as Harbor's rewardkit "
                    "reads it."
                ),
            ),
            "fetch": (
                _DATASET,
                "fetch",
                "Download the published suite NAME, check it, and unpack it into the cache folder.",
            ),
            "import-rewardkit": (
                _CHECKLISTS,
                "import_rewardkit",
                (
                    "Read the criteria and judge TOMLs of a rewardkit FOLDER as a checklist; "
                    "run nothing."
                ),
            ),
            "list": (
                _DATASET,
                "list_",
                "List the tasks of SUITE; without SUITE, list the suites that have a name.",
            ),
            "new": (_AUTHORING, "new", "Make an empty suite in FOLDER."),
            "review": (
                _AUTHORING,
                "review",
                "Show the states of SUITE's tasks, or change the state of one of them.",
            ),
            "show": (
                _DATASET,
                "show",
                "Show one TASK (an id) of SUITE: its instruction, position and files.",
            ),
            "stats": (_DATASET, "stats", "Count the tasks, cases, kinds and checkers of SUITE."),
            "triage": (
                _DATASET,
                "triage",
                "Sort forum POSTS (.jsonl): which of them are worth a task?",
            ),
            "validate": (_DATASET, "validate", "Check SUITE: every fault with its file."),
        }
    },
    context_settings={"help_option_names": ["-h", "--help"]},
    examples=(
        "dataset list",
        "dataset show sample 1001",
        "dataset fetch spreadsheetbench-verified-400",
    ),
)
def dataset() -> None:
    """List, show, validate, fetch and write suites.

    A SUITE is a folder, a .tar.gz, the file that defines a suite (such as dataset.json), or a
    name: `sample` ships with the judge, and `judge dataset list` names the published ones.
    """


class AnnotateGroup(LazyGroup):
    """The commands of `judge annotate`; without a command, it opens the page."""

    default = "page"
    """Name of the command that ``judge annotate SUITE TASK`` runs."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """If the first word is a suite and not a command, runs the command that opens the page."""
        if args and args[0] not in self.lazy:
            args = [self.default, *args]
        return super().resolve_command(ctx, args)


@click.group(
    cls=AnnotateGroup,
    rows={
        "Commands": {
            "page": (_ANNOTATE, "page", "Open the page for a task (or: SUITE TASK)."),
            "add": (_ANNOTATE, "add", "Make a new case from an old one."),
            "set": (_ANNOTATE, "set_cells", "Change cells of a case or a draft."),
            "drafts": (_ANNOTATE, "drafts", "List the drafts."),
            "discard": (_ANNOTATE, "discard", "End a draft without saving it."),
            "remove": (_ANNOTATE, "remove", "Undo the last save of a case."),
            "log": (_ANNOTATE, "log", "Show who saved what, and what changed."),
            "check": (_ANNOTATE, "check", "Check cases against the manual's rules."),
            "suggest": (
                "judge.cli.annotate_suggest",
                "suggest",
                "Suggest corner cases, with golds.",
            ),
            "strength": (_ANNOTATE, "strength", "Show how strong the cases are."),
        }
    },
    examples=(
        "annotate mysuite/ 1 --reference right.py",
        "annotate suggest mysuite/ 1 --reference right.py",
    ),
)
def annotate() -> None:
    """Make test cases for the tasks of a suite, and measure how strong they are.

    SUITE is the folder that the cases are saved in. For commands that save nothing, a name such as
    `sample` will do.
    """


class AdminGroup(LazyGroup):
    """A group of commands whose modules need the packages of the server."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports a command by its name.

        Raises:
            UsageError: a package of the server is missing.
        """
        if cmd_name in self.lazy:
            check_installed()
        return super().get_command(ctx, cmd_name)


@click.group(
    cls=AdminGroup,
    rows={
        "Commands": {
            "add": (_ADMIN, "account_add", "Make an account."),
            "list": (_ADMIN, "account_list", "List the accounts."),
            "set": (
                _ADMIN,
                "account_set",
                "Block or activate an account, or change how many judgings it may have at a time.",
            ),
        }
    },
    examples=("serve admin account add ann",),
)
def account() -> None:
    """Accounts: people, teams and services."""


@click.group(
    cls=AdminGroup,
    rows={
        "Commands": {
            "add": (
                _ADMIN,
                "suite_add",
                "Add the suite SOURCE under NAME, or make it the newest revision of that suite.",
            ),
            "list": (_ADMIN, "suite_list", "List the suites."),
            "name": (_ADMIN, "suite_name", "Name ACCOUNT as an author or a reviewer of SUITE."),
            "set": (
                _ADMIN,
                "suite_set",
                "Set how many reviewers have to agree before a gold of suite NAME is corrected.",
            ),
        }
    },
    examples=("serve admin suite add budget ./my-suite",),
)
def suite() -> None:
    """Suites and their revisions."""


@click.group(
    cls=AdminGroup,
    rows={
        "Commands": {
            "add": (_ADMIN, "phase_add", "Add the phase NAME to SUITE."),
            "list": (_ADMIN, "phase_list", "List the phases."),
            "set": (
                _ADMIN,
                "phase_set",
                "Open, close or publish a phase by hand, or let its times decide again.",
            ),
        }
    },
    examples=("serve admin phase add budget-open budget",),
)
def phase() -> None:
    """Phases: when, and how often, a suite takes submissions."""


@click.group(
    cls=AdminGroup,
    rows={
        "Commands": {
            "add": (
                _ADMIN,
                "board_add",
                "Add the board NAME to PHASE; its conditions are the current ones.",
            )
        }
    },
    examples=("serve admin board add budget budget-open",),
)
def board() -> None:
    """Boards of phases."""


@click.group(
    cls=AdminGroup,
    rows={
        "Commands": {
            "list": (
                _ADMIN,
                "keys_list",
                "List the public keys, with the times that they are valid.",
            ),
            "revoke": (
                _ADMIN,
                "keys_revoke",
                "Declare KEY untrusted from a given time on.",
            ),
            "rotate": (
                _ADMIN,
                "keys_rotate",
                "Sign with a new key from now on; the earlier ones stay listed.",
            ),
        }
    },
    examples=("serve admin keys rotate",),
)
def keys() -> None:
    """Keys that sign results and boards."""


_GROUPS = __name__


@click.group(
    cls=AdminGroup,
    rows={
        "Commands": {
            "account": (_GROUPS, "account", "Accounts: people, teams and services."),
            "backup": (
                _ADMIN,
                "backup",
                (
                    "Write a backup to FILE while the server runs: database, bodies, suites, "
                    "results, keys."
                ),
            ),
            "board": (_GROUPS, "board", "Boards of phases."),
            "check": (
                _ADMIN,
                "check",
                (
                    "Check the data for inconsistencies and list them; exits with 1 if there are "
                    "any."
                ),
            ),
            "keys": (_GROUPS, "keys", "Keys that sign results and boards."),
            "leak": (
                _ADMIN,
                "leak",
                "Show how much each feedback level can give away of a suite's splits.",
            ),
            "link": (_ADMIN, "link", "Print a link that signs ACCOUNT in once, within 30 minutes."),
            "log": (_ADMIN, "log", "Print the audit log: who did what, from where."),
            "maintenance": (
                _ADMIN,
                "maintenance",
                (
                    "Stop accepting submissions and starting judgings (running ones finish), or "
                    "resume."
                ),
            ),
            "migrate": (
                _ADMIN,
                "migrate",
                "Bring the database to the schema of this version, or one step back.",
            ),
            "oidc": (
                _ADMIN,
                "oidc",
                "Let people sign in at the OpenID Connect provider ISSUER; `off` ends it.",
            ),
            "outvoted": (
                _ADMIN,
                "outvoted",
                (
                    "Open disputes over golds of SUITE that several accounts' submissions outvote; "
                    "run it nightly."
                ),
            ),
            "phase": (_GROUPS, "phase", "Phases: when, and how often, a suite takes submissions."),
            "probing": (
                _ADMIN,
                "probing",
                "List signs that submissions to SUITE are used to find out its golds.",
            ),
            "restore": (
                _ADMIN,
                "restore",
                "Make a new data folder from the backup FILE, and check it.",
            ),
            "suite": (_GROUPS, "suite", "Suites and their revisions."),
            "sweep": (
                _ADMIN,
                "sweep",
                "Remove files that no row of the database names and that are older than a day.",
            ),
            "token": (_ADMIN, "token", "Make a token for ACCOUNT, and print it; it is not stored."),
            "webhooks": (
                _ADMIN,
                "webhooks",
                "Allow hosts for webhooks, and list them; at first, no host is allowed.",
            ),
        }
    },
    examples=(
        "serve admin account add ann --data judge-data",
        "serve admin token ann --scope submit --scope read --data judge-data",
        "serve admin suite add budget ./my-suite --data judge-data",
        "serve admin phase add budget-open budget --data judge-data",
        "serve admin board add budget budget-open --data judge-data",
    ),
)
def admin() -> None:
    """Administer a server, on the machine that has its data folder."""
