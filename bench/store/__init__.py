"""What is kept: the database, arrays, leases, and the commands on a store."""
