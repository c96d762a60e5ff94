"""Checks an exported hand and its fairness proof, from the file alone (docs/fairness.md).

`verify_text` takes what the history exports as structured JSON, one hand or one a line, and says what was proved, what
failed and where, and what nobody can know from the file. It asks no service and needs no key.
"""

from services.deck.verification.checking import verify_lines, verify_text
from services.deck.verification.report import Report

__all__ = ["Report", "verify_lines", "verify_text"]
