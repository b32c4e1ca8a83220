"""What report, history and leaderboard pages share."""
