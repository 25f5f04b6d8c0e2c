"""The command line, one file for each verb. Heavy imports happen when a verb runs."""
