"""What a verification found."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Report:
    """Lines for people. `failed` names the check and the place; a hand is fair as far as proved if it is empty."""

    proved: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    not_proved: list[str] = field(default_factory=list)

    def check(self, fine: bool, check: str, where: str) -> bool:
        """Notes a failure of `check`; returns whether it was fine."""
        if not fine:
            self.failed.append(f"{check}: {where}")
        return fine

    def conclude(self, before: int, sentence: str) -> None:
        """Notes that something is proved, if nothing failed since there were `before` failures."""
        if len(self.failed) == before:
            self.proved.append(sentence)
