"""What a verification found."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Report:
    """Lines for people. `failed` names the check and the place; a hand is fair as far as proved if it is empty."""

    proved: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    not_proved: list[str] = field(default_factory=list)
    # The hand's full name, empty for what is not about one.
    name: str = ""

    def add(self, other: Report) -> None:
        """Takes over what another report says."""
        self.proved += other.proved
        self.failed += other.failed
        self.not_proved += other.not_proved

    def check(self, fine: bool, check: str, where: str) -> bool:
        """Notes a failure of `check`; returns whether it was fine."""
        if not fine:
            self.failed.append(f"{check}: {where}")
        return fine

    def conclude(self, before: int, sentence: str) -> None:
        """Notes that something is proved, if nothing failed since there were `before` failures."""
        if len(self.failed) == before:
            self.proved.append(sentence)
