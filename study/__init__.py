"""What stands above all rooms: making the shipped models again, measuring them, picturing them."""
