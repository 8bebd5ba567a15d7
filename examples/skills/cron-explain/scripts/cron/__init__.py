"""Cron schedules: reading (schedule, crontab), wording (words), the next runs (times), mistakes (warnings)."""
