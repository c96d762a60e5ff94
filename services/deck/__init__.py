"""The deck service: shuffles, undealt cards, reshuffles and their proofs."""
