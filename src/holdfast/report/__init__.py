"""What people read: a report for those who answer for the advice, a letter, an audit."""
