"""Play money for bots: an operator's deposits, so that no bot is ever out of the game."""

from __future__ import annotations

from fivedraw_client import Client, new_id


class Bank:
    """Deposits cash for bots with an operator's token."""

    def __init__(self, operator: Client, currency: str) -> None:
        self._operator = operator
        self._currency = currency
        self.deposited_minor = 0

    async def open_account(self, player_id: str, display_name: str) -> None:
        """Makes the player's profile; again for the same player, nothing happens."""
        await self._operator.create_player(player_id, display_name, request_id=f"bot-profile-{player_id}")

    async def fund(self, player: str, amount_minor: int) -> None:
        """Adds to a player's cash."""
        await self._operator.deposit(
            player, amount_minor, currency=self._currency, note="play money for a bot", request_id=new_id()
        )
        self.deposited_minor += amount_minor
