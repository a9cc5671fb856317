"""Who may ask the server of `refinery browse`, and what every answer forbids the browser. Start at middleware.py."""
