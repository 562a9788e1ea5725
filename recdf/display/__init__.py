"""What people look at: pictures, leaderboard, report. Everything here is made from tables."""
