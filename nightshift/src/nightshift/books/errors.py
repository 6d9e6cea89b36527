"""What the books refuse.

BooksError
├── BooksNotEmpty      a generator may write into empty books only
├── UnknownAccount     no such account
├── UnknownAttachment  no such attachment
├── UnknownRun         no such agent run
├── FilingKeyTaken     a key belongs to one run for ever
├── FilingMismatch     a run that was filed came back with another filing
└── RunNotBegun        a run is finished that was never begun
"""


class BooksError(Exception):
    """Root of all errors of the books."""


class BooksNotEmpty(BooksError):
    """The books hold tenants already; call `empty_books` first, or use another database."""


class UnknownAccount(BooksError):
    """There is no account with this id."""

    def __init__(self, account_id: int) -> None:
        super().__init__(f"there is no account {account_id} in the books; was it removed?")
        self.account_id = account_id


class UnknownAttachment(BooksError):
    """There is no attachment with this id."""

    def __init__(self, attachment_id: int) -> None:
        super().__init__(f"there is no attachment {attachment_id} in the books; was it removed?")
        self.attachment_id = attachment_id


class UnknownRun(BooksError):
    """There is no agent run with this id."""

    def __init__(self, run_id: int) -> None:
        super().__init__(f"there is no agent run {run_id} in the books; was it removed?")
        self.run_id = run_id


class FilingKeyTaken(BooksError):
    """Another run was begun under this key."""

    def __init__(self, run_id: int, key: str) -> None:
        super().__init__(f"run {run_id} cannot use key {key}: another run has it; derive keys from run ids")
        self.run_id, self.key = run_id, key


class FilingMismatch(BooksError):
    """The gateway accepted a second filing for a run, or one filing for two runs."""

    def __init__(self, run_id: int, *, known: str, told: str) -> None:
        super().__init__(
            f"run {run_id} is filed as {known}, and the gateway now says {told}: "
            "one of the two must be withdrawn by hand"
        )
        self.run_id, self.known, self.told = run_id, known, told


class RunNotBegun(BooksError):
    """A run without a committed key was to be finished."""

    def __init__(self, run_id: int) -> None:
        super().__init__(f"run {run_id} has no filing key; call begin_submission before the gateway is called")
        self.run_id = run_id
