"""What a cell is: the protocol, the cell's specification and its outcome."""
