"""What is known of a recourse: its status, price, bound, gap, and the sentence that says so."""
