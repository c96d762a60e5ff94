"""An embedded house on one machine: its folder, keys, ports and processes."""
